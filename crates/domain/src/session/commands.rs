//! What doors ask of a session: checked, then written down.

use serde_json::Value;

use super::{Now, Session, When, user_message};
use crate::{
    Accepted, Answer, Ask, Command, CommandError, Event, IfBusy, Message, Order, Outcome, Part, Plan, Question,
    QuestionId, QuestionOrigin, Reply, ResetReason, RunId, RunOrigin, STATE_LIMIT, Seq, SettingsPatch, State, state,
};

/// How many prompts may wait in one session.
const QUEUE_LIMIT: usize = 16;

impl Session {
    /// Carries out a command, or says why not. A refused command changes nothing.
    pub fn command(&mut self, now: &mut Now<'_>, command: Command) -> Result<Accepted, CommandError> {
        match command {
            Command::Prompt { run, origin, parts, if_busy, meta } => {
                let prompt = Prompt { run, origin, parts, meta };
                self.prompt(now, prompt, if_busy)
            }
            Command::Cancel { run, origin } => self.cancel(now, run, origin),
            Command::Answer { question, reply, origin, meta } => self.answer(now, question, reply, origin, meta),
            Command::Configure { patch } => Ok(self.configure(now, patch)),
            Command::SetTitle { title } => Ok(self.set_title(now, title)),
            Command::SetState { delta, meta } => self.set_state(now, delta, meta),
            Command::Archive { archived } => Ok(self.archive(now, archived)),
            Command::Reset { keep_to, replacement, reason } => self.reset(now, keep_to, replacement, reason),
        }
    }

    fn prompt(&mut self, now: &mut Now<'_>, prompt: Prompt, if_busy: IfBusy) -> Result<Accepted, CommandError> {
        if prompt.parts.is_empty() {
            return Err(CommandError::EmptyPrompt);
        }
        if self.view.knows(prompt.run) && !cfg!(bug = "run_id_twice") {
            return Ok(Accepted::Repeated(prompt.run));
        }
        let Some(active) = &self.view.run else { return Ok(self.begin(now, prompt)) };
        if cfg!(bug = "two_active_runs") {
            return Ok(self.begin(now, prompt));
        }
        let (id, awaiting) = (active.id, active.is_awaiting());
        match if_busy {
            IfBusy::Refuse if awaiting => Err(CommandError::RunAwaiting(id)),
            IfBusy::Refuse => Err(CommandError::RunActive(id)),
            IfBusy::QueueOrSupersede if awaiting => {
                self.supersede(now);
                self.queue_or_begin(now, prompt)
            }
            IfBusy::Queue | IfBusy::QueueOrSupersede => self.queue_or_begin(now, prompt),
            IfBusy::Steer if active.cancelling => Err(CommandError::NotRunning),
            IfBusy::Steer => Ok(self.steer(now, id, prompt.parts, prompt.meta)),
        }
    }

    fn begin(&mut self, now: &mut Now<'_>, prompt: Prompt) -> Accepted {
        let Prompt { run, origin, parts, meta } = prompt;
        self.start_run(now, run, origin, parts, meta);
        Accepted::Started(run)
    }

    fn queue_or_begin(&mut self, now: &mut Now<'_>, prompt: Prompt) -> Result<Accepted, CommandError> {
        if self.view.run.is_none() {
            return Ok(self.begin(now, prompt));
        }
        if self.view.queue.len() >= QUEUE_LIMIT {
            return Err(CommandError::QueueFull(self.view.queue.len()));
        }
        let Prompt { run, origin, parts, meta } = prompt;
        self.append_with(now.at, Some(run), Event::RunQueued { origin, parts }, meta);
        Ok(Accepted::Queued(run))
    }

    fn supersede(&mut self, now: &mut Now<'_>) {
        self.answer_all(now, &Reply::Superseded);
        self.end_run(now, Outcome::Cancelled);
    }

    /// A turn without a back-end finds the message in the log when it resumes.
    fn steer(&mut self, now: &mut Now<'_>, run: RunId, parts: Vec<Part>, meta: Option<Value>) -> Accepted {
        self.close_message(now, false);
        let message = user_message(now, parts);
        self.append_with(now.at, Some(run), Event::MessageDone { message: message.clone() }, meta);
        if self.attached {
            self.spoken.push(message.clone());
            self.order(When::Committed, Order::Steer { message });
        }
        Accepted::Steered(run)
    }

    fn cancel(&mut self, now: &mut Now<'_>, run: Option<RunId>, origin: RunOrigin) -> Result<Accepted, CommandError> {
        let active = self.view.run.as_ref().map(|active| (active.id, active.cancelling));
        match (active, run) {
            (Some((id, cancelling)), wanted) if wanted.is_none_or(|wanted| wanted == id) => {
                if !cancelling {
                    self.cancel_active(now, id, origin);
                }
                Ok(Accepted::Done)
            }
            (_, Some(wanted)) if self.view.queue.iter().any(|queued| queued.id == wanted) => {
                self.append(now.at, Some(wanted), Event::RunEnded { outcome: Outcome::Cancelled });
                Ok(Accepted::Done)
            }
            (_, Some(wanted)) => Err(CommandError::NoSuchRun(wanted)),
            (_, None) => Ok(Accepted::Done),
        }
    }

    fn cancel_active(&mut self, now: &mut Now<'_>, run: RunId, origin: RunOrigin) {
        self.close_message(now, true);
        self.append(now.at, Some(run), Event::CancelRequested { by: origin.by });
        self.answer_all(now, &Reply::Cancelled);
        if self.attached {
            self.order(When::Now, Order::Cancel);
        } else {
            self.end_run(now, Outcome::Cancelled);
        }
    }

    fn answer(
        &mut self,
        now: &mut Now<'_>,
        id: QuestionId,
        reply: Reply,
        origin: RunOrigin,
        meta: Option<Box<Value>>,
    ) -> Result<Accepted, CommandError> {
        let run = self.view.run.as_ref().ok_or(CommandError::NoSuchQuestion(id))?;
        let question = run.question(id).ok_or(CommandError::NoSuchQuestion(id))?;
        let reply = fit(question, reply)?;
        let approved = question.approved(&reply).zip(question.plan.as_ref().map(|proposal| proposal.then.clone()));
        // Whoever holds a child does not park before it is answered: only others can miss what crosses their last report.
        let may_cross = question.origin == QuestionOrigin::Parked;
        let run = run.id;
        let answer = Answer { by: Some(origin.by), reply };
        self.close_message(now, false);
        let event = Event::QuestionAnswered { question: id, answer: answer.clone() };
        self.append_with(now.at, Some(run), event, meta.map(|meta| *meta));
        if let Some((plan, then)) = approved {
            self.append(now.at, Some(run), Event::PlanSet { plan });
            self.configure(now, SettingsPatch { mode: then, ..SettingsPatch::default() });
        }
        if self.attached {
            self.crossed |= may_cross;
            self.order(When::Committed, Order::Answered { question: id, answer });
        } else {
            self.attached = true;
            self.order(When::Committed, Order::Resume { run });
        }
        Ok(Accepted::Done)
    }

    fn configure(&mut self, now: &mut Now<'_>, patch: SettingsPatch) -> Accepted {
        let mut settings = self.view.settings.clone();
        settings.apply(&patch);
        if settings != self.view.settings {
            self.append(now.at, None, Event::SettingsChanged { patch });
            if self.attached {
                self.order(When::Committed, Order::Configured { settings });
            }
        }
        Accepted::Done
    }

    fn set_title(&mut self, now: &mut Now<'_>, title: String) -> Accepted {
        if self.view.title.as_ref() != Some(&title) {
            self.append(now.at, None, Event::TitleSet { title });
        }
        Accepted::Done
    }

    fn set_state(
        &mut self,
        now: &mut Now<'_>,
        delta: State,
        meta: Option<Box<Value>>,
    ) -> Result<Accepted, CommandError> {
        let delta = state::lasting(delta);
        if let Some(size) = self.overfull(&delta) {
            return Err(CommandError::StateFull(size));
        }
        self.append_with(now.at, None, Event::StateChanged { delta, call: None }, meta.map(|meta| *meta));
        Ok(Accepted::Done)
    }

    /// How large the values would be, if that is too large.
    pub(super) fn overfull(&self, delta: &State) -> Option<usize> {
        let size = state::size(&self.view.state) + state::size(delta);
        (size > STATE_LIMIT).then_some(size)
    }

    fn archive(&mut self, now: &mut Now<'_>, archived: bool) -> Accepted {
        if self.view.archived != archived {
            self.append(now.at, None, Event::ArchiveSet { archived });
        }
        Accepted::Done
    }

    fn reset(
        &mut self,
        now: &mut Now<'_>,
        keep_to: Seq,
        replacement: Vec<Message>,
        reason: ResetReason,
    ) -> Result<Accepted, CommandError> {
        if let Some(run) = &self.view.run {
            return Err(CommandError::RunActive(run.id));
        }
        if keep_to > self.view.head {
            return Err(CommandError::NoSuchPlace(keep_to));
        }
        self.append(now.at, None, Event::HistoryReset { keep_to, replacement, reason });
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
fn fit(question: &Question, reply: Reply) -> Result<Reply, CommandError> {
    match (&question.ask, reply) {
        (Ask::Choose { .. }, Reply::Chosen { choice, .. }) => match question.choice(&choice) {
            Some(known) => Ok(Reply::Chosen { choice, kind: known.kind }),
            None => Err(CommandError::BadAnswer(format!("no such choice: {choice}"))),
        },
        (Ask::Form { .. } | Ask::Visit { .. }, filled @ Reply::Filled { .. }) => Ok(filled),
        (_, reply @ (Reply::Declined | Reply::Cancelled)) => Ok(reply),
        (Ask::Choose { .. }, Reply::Filled { content }) if question.plan.is_some() => {
            let plan = Plan::edited(&content).map_err(CommandError::BadAnswer)?;
            Ok(Reply::Filled { content: serde_json::json!(plan) })
        }
        (Ask::Choose { .. }, Reply::Filled { .. }) => Err(CommandError::BadAnswer("choose an option".to_owned())),
        (Ask::Form { .. } | Ask::Visit { .. }, Reply::Chosen { .. }) => {
            Err(CommandError::BadAnswer("send the content asked for".to_owned()))
        }
        (_, Reply::Interrupted | Reply::Superseded) => {
            Err(CommandError::BadAnswer("only the server can say so".to_owned()))
        }
    }
}
