//! What doors ask of a session: checked, then written down.

use serde_json::Value;

use super::{MachineContext, OrderTiming, Session, session_user_message};
use crate::{
    Accepted, Answer, Command, CommandError, Event, IfBusy, MAX_STATE_BYTES, Message, MessageId, Order, Outcome, Part,
    Plan, ProviderPayload, Question, QuestionId, QuestionKind, QuestionOrigin, Reply, ResetReason, Role, RunId,
    RunOrigin, Seq, SessionCommand, SettingsPatch, State, TextMark, state,
};

/// How many prompts may wait in one session.
const MAX_QUEUED_RUNS: usize = 16;

impl Session {
    /// Carries out a command, or says why not. A refused command changes nothing.
    pub fn handle_command(
        &mut self,
        context: &mut MachineContext<'_>,
        command: Command,
    ) -> Result<Accepted, CommandError> {
        match command {
            Command::Prompt { run, origin, parts, if_busy, meta } => {
                let prompt = Prompt { run, origin, parts, meta };
                self.handle_prompt(context, prompt, if_busy)
            }
            Command::Cancel { run, origin } => self.handle_cancel(context, run, origin),
            Command::Answer { question, reply, origin, meta } => {
                self.handle_answer(context, question, reply, origin, meta)
            }
            Command::Configure { patch } => Ok(self.handle_configure(context, patch)),
            Command::SetTitle { title } => Ok(self.handle_set_title(context, title)),
            Command::SetState { delta, meta } => self.handle_set_state(context, delta, meta),
            Command::Archive { archived } => Ok(self.handle_archive(context, archived)),
            Command::MarkText { mark } => Ok(self.handle_mark_text(context, mark)),
            Command::Reset { keep_to, replacement, reason } => self.handle_reset(context, keep_to, replacement, reason),
        }
    }

    /// The next prompt is that text, so it is written down also where nothing new is said.
    fn handle_mark_text(&mut self, context: &mut MachineContext<'_>, mark: TextMark) -> Accepted {
        if !mark.is_empty() {
            self.append(context.at, None, Event::TextMarked { mark });
        }
        Accepted::Done
    }

    fn handle_prompt(
        &mut self,
        context: &mut MachineContext<'_>,
        prompt: Prompt,
        if_busy: IfBusy,
    ) -> Result<Accepted, CommandError> {
        if prompt.parts.is_empty() {
            return Err(CommandError::EmptyPrompt);
        }
        if self.view.has_seen_run(prompt.run) && !cfg!(bug = "run_id_twice") {
            return Ok(Accepted::Repeated(prompt.run));
        }
        let command = SessionCommand::in_prompt(&prompt.parts)?;
        let active = self.view.run.as_ref().map(|run| (run.id, run.is_awaiting(), run.cancelling));
        if let IfBusy::SteerRun(wanted) = if_busy
            && active.is_none_or(|(id, _, cancelling)| id != wanted || cancelling)
        {
            return Err(CommandError::NotRunning);
        }
        let Some((id, awaiting, cancelling)) = active else { return Ok(self.start_prompt(context, prompt)) };
        if cfg!(bug = "two_active_runs") {
            return Ok(self.start_prompt(context, prompt));
        }
        // A title can change in the middle of a run.
        if let (Some(title @ SessionCommand::Title(_)), IfBusy::Refuse | IfBusy::Steer | IfBusy::SteerRun(_)) =
            (&command, if_busy)
        {
            self.carry_out(context, None, title.clone());
            return Ok(Accepted::Done);
        }
        match if_busy {
            // Whoever cancels a turn and prompts again does not wait for the end of the first: its back-end may take a
            // moment to stop, and until then the session is busy for nobody's sake.
            IfBusy::Refuse | IfBusy::Steer if cancelling => self.queue_or_start_prompt(context, prompt),
            // An agent that is told "/clear" would not know what is meant.
            IfBusy::Steer | IfBusy::SteerRun(_) if command.is_some() => Err(CommandError::RunActive(id)),
            IfBusy::Refuse if awaiting => Err(CommandError::RunAwaiting(id)),
            IfBusy::Refuse => Err(CommandError::RunActive(id)),
            IfBusy::QueueOrSupersede if awaiting => {
                self.supersede_awaiting_run(context);
                self.queue_or_start_prompt(context, prompt)
            }
            IfBusy::Queue | IfBusy::QueueOrSupersede => self.queue_or_start_prompt(context, prompt),
            IfBusy::Steer | IfBusy::SteerRun(_) => Ok(self.steer_run(context, id, prompt.parts, prompt.meta)),
        }
    }

    fn start_prompt(&mut self, context: &mut MachineContext<'_>, prompt: Prompt) -> Accepted {
        let Prompt { run, origin, parts, meta } = prompt;
        self.start_run(context, run, origin, parts, meta);
        Accepted::Started(run)
    }

    /// What a prompt commands of the session itself.
    pub(super) fn carry_out(&mut self, context: &mut MachineContext<'_>, run: Option<RunId>, command: SessionCommand) {
        match command {
            SessionCommand::Clear => {
                let (keep_to, replacement, reason) = (Seq::ZERO, Vec::new(), ResetReason::Cleared);
                self.append(context.at, run, Event::HistoryReset { keep_to, replacement, reason });
            }
            SessionCommand::Title(title) if self.view.title.as_ref() != Some(&title) => {
                self.append(context.at, run, Event::TitleSet { title });
            }
            SessionCommand::Title(_) => {}
        }
    }

    /// Whoever waits for the end of a run gets an answer: some clients show nothing else.
    pub(super) fn say_command_done(&mut self, context: &mut MachineContext<'_>, run: RunId, command: &SessionCommand) {
        let text = match command {
            SessionCommand::Clear => "The conversation is cleared.".to_owned(),
            SessionCommand::Title(title) => format!("The title is now: {title}"),
        };
        let native = Some(ProviderPayload::made_by_session());
        let message = Message { native, ..Message::text(MessageId::make(context.ids), Role::Agent, text) };
        self.append(context.at, Some(run), Event::MessageDone { message });
    }

    fn queue_or_start_prompt(
        &mut self,
        context: &mut MachineContext<'_>,
        prompt: Prompt,
    ) -> Result<Accepted, CommandError> {
        if self.view.run.is_none() {
            return Ok(self.start_prompt(context, prompt));
        }
        if self.view.queue.len() >= MAX_QUEUED_RUNS {
            return Err(CommandError::QueueFull(self.view.queue.len()));
        }
        let Prompt { run, origin, parts, meta } = prompt;
        self.append_with_meta(context.at, Some(run), Event::RunQueued { origin, parts }, meta);
        Ok(Accepted::Queued(run))
    }

    fn supersede_awaiting_run(&mut self, context: &mut MachineContext<'_>) {
        self.answer_open_questions(context, &Reply::Superseded);
        self.end_run(context, Outcome::Cancelled);
    }

    /// A turn without a back-end finds the message in the log when it resumes.
    fn steer_run(
        &mut self,
        context: &mut MachineContext<'_>,
        run: RunId,
        parts: Vec<Part>,
        meta: Option<Value>,
    ) -> Accepted {
        self.close_message(context, false);
        let message = session_user_message(context, parts);
        self.append_with_meta(context.at, Some(run), Event::MessageDone { message: message.clone() }, meta);
        if self.has_backend {
            self.unconfirmed_steering.push(message.clone());
            self.push_order(OrderTiming::AfterCommit, Order::Steer { message });
        }
        Accepted::Steered(run)
    }

    fn handle_cancel(
        &mut self,
        context: &mut MachineContext<'_>,
        run: Option<RunId>,
        origin: RunOrigin,
    ) -> Result<Accepted, CommandError> {
        let active = self.view.run.as_ref().map(|active| (active.id, active.cancelling));
        match (active, run) {
            (Some((id, cancelling)), wanted) if wanted.is_none_or(|wanted| wanted == id) => {
                match cancelling {
                    false => self.cancel_active_run(context, id, origin),
                    true if run.is_none() => self.cancel_queued_runs(context, &origin),
                    true => {}
                }
                Ok(Accepted::Done)
            }
            (_, Some(wanted)) if self.view.queue.iter().any(|queued| queued.id == wanted) => {
                self.append(context.at, Some(wanted), Event::RunEnded { outcome: Outcome::Cancelled });
                Ok(Accepted::Done)
            }
            (_, Some(wanted)) => Err(CommandError::NoSuchRun(wanted)),
            (_, None) => Ok(Accepted::Done),
        }
    }

    fn cancel_active_run(&mut self, context: &mut MachineContext<'_>, run: RunId, origin: RunOrigin) {
        self.close_message(context, true);
        self.append(context.at, Some(run), Event::CancelRequested { by: origin.by });
        self.answer_open_questions(context, &Reply::Cancelled);
        if self.has_backend {
            self.push_order(OrderTiming::Immediately, Order::Cancel);
        } else {
            self.end_run(context, Outcome::Cancelled);
        }
    }

    /// The turn is cancelled already: a further cancel means what the same caller has prompted since. Prompts of others
    /// stay in the queue.
    fn cancel_queued_runs(&mut self, context: &mut MachineContext<'_>, origin: &RunOrigin) {
        let queued = self.view.queue.iter().filter(|queued| queued.origin == *origin);
        for run in queued.map(|queued| queued.id).collect::<Vec<RunId>>() {
            self.append(context.at, Some(run), Event::RunEnded { outcome: Outcome::Cancelled });
        }
    }

    fn handle_answer(
        &mut self,
        context: &mut MachineContext<'_>,
        id: QuestionId,
        reply: Reply,
        origin: RunOrigin,
        meta: Option<Box<Value>>,
    ) -> Result<Accepted, CommandError> {
        let run = self.view.run.as_ref().ok_or(CommandError::NoSuchQuestion(id))?;
        let question = run.find_question(id).ok_or(CommandError::NoSuchQuestion(id))?;
        let reply = validate_answer_command(question, reply)?;
        let approved = question.approved_plan(&reply).zip(question.plan.as_ref().map(|proposal| proposal.then.clone()));
        // Whoever holds a child does not park before it is answered: only others can miss what crosses their last report.
        let may_cross = question.origin == QuestionOrigin::Parked;
        let run = run.id;
        let answer = Answer { by: Some(origin.by), door: Some(origin.door), reply };
        self.close_message(context, false);
        let event = Event::QuestionAnswered { question: id, answer: answer.clone() };
        self.append_with_meta(context.at, Some(run), event, meta.map(|meta| *meta));
        if let Some((plan, then)) = approved {
            self.append(context.at, Some(run), Event::PlanSet { plan });
            self.handle_configure(context, SettingsPatch { mode: then, ..SettingsPatch::default() });
        }
        if self.has_backend {
            self.answer_may_be_missed |= may_cross;
            self.push_order(OrderTiming::AfterCommit, Order::Answered { question: id, answer });
        } else {
            self.has_backend = true;
            self.push_order(OrderTiming::AfterCommit, Order::Resume { run });
        }
        Ok(Accepted::Done)
    }

    fn handle_configure(&mut self, context: &mut MachineContext<'_>, patch: SettingsPatch) -> Accepted {
        let mut settings = self.view.settings.clone();
        settings.apply_patch(&patch);
        if settings != self.view.settings {
            self.append(context.at, None, Event::SettingsChanged { patch });
            if self.has_backend {
                self.push_order(OrderTiming::AfterCommit, Order::Configured { settings });
            }
        }
        Accepted::Done
    }

    fn handle_set_title(&mut self, context: &mut MachineContext<'_>, title: String) -> Accepted {
        if self.view.title.as_ref() != Some(&title) {
            self.append(context.at, None, Event::TitleSet { title });
        }
        Accepted::Done
    }

    fn handle_set_state(
        &mut self,
        context: &mut MachineContext<'_>,
        delta: State,
        meta: Option<Box<Value>>,
    ) -> Result<Accepted, CommandError> {
        let delta = state::state_without_temporary(delta);
        if let Some(size) = self.state_size_over_limit(&delta) {
            return Err(CommandError::StateFull(size));
        }
        self.append_with_meta(context.at, None, Event::StateChanged { delta, call: None }, meta.map(|meta| *meta));
        Ok(Accepted::Done)
    }

    /// How large the values would be, if that is too large.
    pub(super) fn state_size_over_limit(&self, delta: &State) -> Option<usize> {
        let size = state::encoded_state_size(&self.view.state) + state::encoded_state_size(delta);
        (size > MAX_STATE_BYTES).then_some(size)
    }

    fn handle_archive(&mut self, context: &mut MachineContext<'_>, archived: bool) -> Accepted {
        if self.view.archived != archived {
            self.append(context.at, None, Event::ArchiveSet { archived });
        }
        Accepted::Done
    }

    fn handle_reset(
        &mut self,
        context: &mut MachineContext<'_>,
        keep_to: Seq,
        replacement: Vec<Message>,
        reason: ResetReason,
    ) -> Result<Accepted, CommandError> {
        if let Some(run) = &self.view.run {
            return Err(CommandError::RunActive(run.id));
        }
        if keep_to > self.view.head {
            return Err(CommandError::NoSuchSeq(keep_to));
        }
        self.append(context.at, None, Event::HistoryReset { keep_to, replacement, reason });
        Ok(Accepted::Done)
    }
}

struct Prompt {
    run: RunId,
    origin: RunOrigin,
    parts: Vec<Part>,
    meta: Option<Value>,
}

/// What a choice means is the question's to say, not the caller's.
fn validate_answer_command(question: &Question, reply: Reply) -> Result<Reply, CommandError> {
    match (&question.ask, reply) {
        (QuestionKind::Choose { .. }, Reply::Chosen { choice, .. }) => match question.find_choice(&choice) {
            Some(known) => Ok(Reply::Chosen { choice, kind: known.kind }),
            None => Err(CommandError::BadAnswer(format!("no such choice: {choice}"))),
        },
        (QuestionKind::Form { .. } | QuestionKind::Visit { .. }, filled @ Reply::Filled { .. }) => Ok(filled),
        (QuestionKind::Choose { .. }, rejected @ Reply::Rejected { .. }) => Ok(rejected),
        (_, reply @ (Reply::Declined | Reply::Cancelled)) => Ok(reply),
        (QuestionKind::Choose { .. }, Reply::Filled { content }) if question.plan.is_some() => {
            let plan = Plan::parse_edited(&content).map_err(CommandError::BadAnswer)?;
            Ok(Reply::Filled { content: serde_json::json!(plan) })
        }
        (QuestionKind::Choose { .. }, Reply::Filled { .. }) => {
            Err(CommandError::BadAnswer("choose an option".to_owned()))
        }
        (QuestionKind::Form { .. } | QuestionKind::Visit { .. }, Reply::Chosen { .. } | Reply::Rejected { .. }) => {
            Err(CommandError::BadAnswer("send the content asked for".to_owned()))
        }
        (_, Reply::Interrupted | Reply::Superseded) => {
            Err(CommandError::BadAnswer("only the server can say so".to_owned()))
        }
    }
}
