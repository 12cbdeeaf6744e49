//! The turn under way: what the agent tells is shown, what it asks is asked, one question at a time.

use anyhow::bail;
use gander_client::schema::{RequestPermissionRequest, SessionUpdate};
use gander_client::{AgentConnection, AgentEvent};
use gander_wire::acp::client::{AGENT_GONE, CallId, PermissionRequest};
use gander_wire::jsonrpc::{Error, RequestId};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::answer::{self, TypedAnswer};
use super::busy::{self, IfBusy};
use super::ending::Ending;
use super::prompt::Prompt;
use super::question_text::{self, DetailLimit};
use super::questions::{Questions, RunQuestion, Withdrawn};
use super::reconnect::RunHost;
use super::screen::Screen;
use super::seen::Seen;
use super::{events, reconnect};
use crate::commands::Exit;
use crate::output::Tone;
use crate::terminal::person::Person;
use crate::terminal::spinner;

/// The turn under way.
pub(crate) struct RunTurn<'a> {
    pub(super) host: &'a RunHost<'a>,
    pub(super) connection: AgentConnection,
    pub(super) session: String,
    pub(super) prompt: Prompt,
    pub(super) if_busy: Option<IfBusy>,
    pub(super) work: Work,
    pub(super) screen: Screen,
    pub(super) seen: Seen,
    pub(super) questions: Questions,
    pub(super) person: Option<Person>,
    /// A person is asked what to do about a turn that runs already.
    pub(super) asks_if_busy: bool,
    pub(super) cancelled: bool,
    pub(super) ending: Ending,
    /// What the spinner says while the model works.
    pub(super) waits_for: String,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing: the session is watched until somebody interrupts.
    Watch,
    /// Our prompt's run.
    Prompt(CallId),
    /// That the running turn takes our prompt.
    Steer(CallId),
    /// The end of a run, and then what.
    Wait(CallId, Then),
}

/// What comes after a run that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Leave,
    SendPrompt,
}

impl<'a> RunTurn<'a> {
    /// A turn without a prompt in which nothing is waited for yet.
    pub(crate) fn new(host: &'a RunHost<'a>, connection: AgentConnection, session: String, screen: Screen) -> Self {
        Self {
            host,
            connection,
            session,
            prompt: Prompt::default(),
            if_busy: None,
            work: Work::Watch,
            screen,
            seen: Seen::default(),
            questions: Questions::default(),
            person: None,
            asks_if_busy: false,
            cancelled: false,
            ending: Ending::new(),
            waits_for: "waiting for the model".to_owned(),
        }
    }
}

impl RunTurn<'_> {
    /// Until the turn has ended.
    pub(crate) async fn run(&mut self) -> anyhow::Result<Exit> {
        // One listener for the whole turn: a signal between two looks is not lost.
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ticks = tokio::time::interval(spinner::TICK);
        loop {
            let line = async {
                match &mut self.person {
                    Some(person) if self.asks_if_busy || self.questions.asked().is_some() => person.line().await,
                    Some(_) | None => std::future::pending().await,
                }
            };
            tokio::select! {
                told = self.connection.next_event() => match told {
                    Ok(told) => if let Some(exit) = self.handle_agent_event(told).await? {
                        return Ok(exit);
                    },
                    Err(_) => self.reconnect().await?,
                },
                line = line => if let Some(exit) = self.handle_typed(line)? {
                    return Ok(exit);
                },
                _ = ticks.tick(), if self.screen.has_spinner() && self.work != Work::Watch => self.screen.tick(&self.waits_for),
                _ = interrupts.recv() => if let Some(exit) = self.handle_interrupt()? {
                    return Ok(exit);
                },
            }
        }
    }

    /// Sends the prompt, in the way that was asked for.
    pub(crate) fn send_prompt(&mut self) {
        let blocks = self.prompt.blocks();
        let steered = json!({ "sessionId": self.session, "prompt": blocks });
        self.work = match self.if_busy {
            Some(IfBusy::Steer) => Work::Steer(self.connection.client.call("_session/steering", &steered)),
            Some(IfBusy::Queue) => {
                let queued = json!({
                    "sessionId": self.session, "prompt": blocks, "_meta": { "gander/ifBusy": "queue" },
                });
                Work::Prompt(self.connection.client.call("session/prompt", &queued))
            }
            Some(IfBusy::Wait | IfBusy::Refuse) | None => {
                Work::Prompt(self.connection.client.call("session/prompt", &steered))
            }
        };
    }

    /// Waits for the end of the run under way, whoever began it.
    pub(crate) fn wait_for_run(&mut self, then: Then) {
        let params = json!({ "sessionId": self.session });
        self.work = Work::Wait(self.connection.client.call("_gander/session/wait", &params), then);
    }

    pub(crate) fn show_session_update(&mut self, update: SessionUpdate) -> anyhow::Result<()> {
        self.seen.note(&update);
        self.ending.note(&update);
        Ok(self.screen.show_update(update.into())?)
    }

    async fn handle_agent_event(&mut self, told: AgentEvent) -> anyhow::Result<Option<Exit>> {
        match told {
            AgentEvent::Updated(update) if *update.session_id.0 == *self.session => {
                self.show_session_update(update.update)?
            }
            AgentEvent::Asked { permission, request } => self.handle_question(permission, *request)?,
            AgentEvent::Withdrawn { request } => self.handle_withdrawn(&request)?,
            AgentEvent::Answered { call, result } => return self.handle_answered(call, &result),
            // The link says so itself, right after its calls have failed.
            AgentEvent::Failed { error, .. } if error.code == AGENT_GONE => {}
            AgentEvent::Failed { call, error } => return self.handle_failed(call, &error),
            AgentEvent::Initialized { .. }
            | AgentEvent::Opened { .. }
            | AgentEvent::Ended { .. }
            | AgentEvent::Updated(_)
            | AgentEvent::Requested { .. }
            | AgentEvent::UpdatedWhole { .. }
            | AgentEvent::Notified { .. } => {}
        }
        Ok(None)
    }

    fn handle_answered(&mut self, call: CallId, result: &Value) -> anyhow::Result<Option<Exit>> {
        match self.work {
            Work::Prompt(own) if own == call => self.finish(result).map(Some),
            Work::Steer(own) if own == call => {
                self.screen.line(Tone::Dim, "  handed to the running turn")?;
                self.wait_for_run(Then::Leave);
                Ok(None)
            }
            Work::Wait(own, Then::SendPrompt) if own == call => {
                self.send_prompt();
                Ok(None)
            }
            Work::Wait(own, Then::Leave) if own == call && result["stopReason"].is_null() => {
                self.finish_idle(&result["lastOutcome"]).map(Some)
            }
            Work::Wait(own, Then::Leave) if own == call => self.finish(result).map(Some),
            Work::Watch | Work::Prompt(_) | Work::Steer(_) | Work::Wait(..) => Ok(None),
        }
    }

    fn handle_failed(&mut self, call: CallId, error: &Error) -> anyhow::Result<Option<Exit>> {
        match self.work {
            Work::Prompt(own) if own == call => match turn_busy_state(error) {
                Some(state) => self.handle_busy(state, error),
                None => self.fail(&error.message).map(Some),
            },
            Work::Wait(own, Then::SendPrompt) if own == call => {
                self.screen.line(Tone::Warn, &format!("the turn before failed: {}", error.message))?;
                self.send_prompt();
                Ok(None)
            }
            Work::Steer(own) | Work::Wait(own, Then::Leave) if own == call => self.fail(&error.message).map(Some),
            Work::Watch | Work::Prompt(_) | Work::Steer(_) | Work::Wait(..) => Ok(None),
        }
    }

    /// A turn runs in this session already, or waits for an answer.
    fn handle_busy(&mut self, state: &str, error: &Error) -> anyhow::Result<Option<Exit>> {
        match (self.if_busy, &self.person) {
            (Some(IfBusy::Wait), _) => self.wait_for_run(Then::SendPrompt),
            // Whoever is here answers what it waits for; then it is their turn.
            (None, Some(_)) if state == "awaiting" => {
                self.screen.line(Tone::Dim, "  this session is waiting for your answer")?;
                self.wait_for_run(Then::SendPrompt);
            }
            (None, Some(_)) => {
                self.screen.line(Tone::Warn, "? A turn is running in this session.")?;
                self.screen.hold_updates();
                self.asks_if_busy = true;
                self.screen.aside(&format!("{}\n{}", busy::CHOICES, busy::PROMPT));
            }
            (Some(IfBusy::Steer | IfBusy::Queue | IfBusy::Refuse), _) | (None, None) => {
                return self.fail(&reconnect::reconnect_busy_message(&self.session, error)).map(Some);
            }
        }
        Ok(None)
    }

    fn handle_question(
        &mut self,
        permission: PermissionRequest,
        request: RequestPermissionRequest,
    ) -> anyhow::Result<()> {
        let question = RunQuestion::new(permission, request);
        if self.person.is_none() {
            return self.reject_unattended(question);
        }
        if let Some(before) = self.questions.push(question) {
            self.connection.client.decline(before);
        }
        self.ask_next()
    }

    /// Puts the next question on the screen, unless one is there.
    fn ask_next(&mut self) -> anyhow::Result<()> {
        if self.asks_if_busy {
            return Ok(());
        }
        let Some((question, waiting)) = self.questions.next_question() else { return Ok(()) };
        if let Some(person) = &mut self.person {
            person.drop_typed();
        }
        let style = self.screen.output().error_style();
        let more = if waiting > 0 { format!(" ({waiting} more after this)") } else { String::new() };
        let headline = format!("? {}{more}", question_text::question_headline(question));
        let detail = question_text::question_detail(&question.tool, style, DetailLimit::Screen);
        let menu = question_text::question_menu(&question.options);
        let prompt = question_text::question_prompt_line(&question.options);
        self.screen.line(Tone::Warn, &headline)?;
        self.screen.hold_updates();
        self.screen.aside(&format!("{detail}{menu}\n{prompt}"));
        Ok(())
    }

    fn handle_typed(&mut self, line: Option<String>) -> anyhow::Result<Option<Exit>> {
        if self.asks_if_busy {
            return self.handle_busy_choice(line.as_deref());
        }
        let Some(line) = line else {
            // ctrl-d: nobody is there any more.
            self.person = None;
            self.screen.aside("\n");
            for question in self.questions.drain() {
                self.reject_unattended(question)?;
            }
            self.screen.release_updates()?;
            return Ok(None);
        };
        let Some(RunQuestion { options, tool, .. }) = self.questions.asked() else { return Ok(None) };
        let style = self.screen.output().error_style();
        match answer::read_typed_answer(options, &line) {
            TypedAnswer::Option(option) => self.answer(&option, None)?,
            TypedAnswer::Reject { option, reason } => {
                self.answer(&option, Some(json!({ "gander/reason": reason })))?;
            }
            TypedAnswer::WhichAlways => self.screen.output().aside(&question_text::question_which_always(options)),
            TypedAnswer::Unclear => self.screen.output().aside(&question_text::question_try_again(options)),
            TypedAnswer::Help => {
                let prompt = question_text::question_prompt_line(options);
                self.screen.output().aside(&format!("{}\n{prompt}", question_text::HELP));
            }
            TypedAnswer::ShowAll => {
                let whole = question_text::question_detail(tool, style, DetailLimit::Whole);
                let (menu, prompt) =
                    (question_text::question_menu(options), question_text::question_prompt_line(options));
                self.screen.output().aside(&format!("{whole}{menu}\n{prompt}"));
            }
        }
        Ok(None)
    }

    fn answer(&mut self, option: &str, meta: Option<Value>) -> anyhow::Result<()> {
        let Some(question) = self.questions.take_asked() else { return Ok(()) };
        self.respond(question.permission, option, meta);
        self.after_question()
    }

    fn respond(&mut self, permission: PermissionRequest, option: &str, meta: Option<Value>) {
        let mut response = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        if let Some(meta) = meta {
            response["_meta"] = meta;
        }
        self.connection.client.respond(permission.into(), &response);
    }

    fn after_question(&mut self) -> anyhow::Result<()> {
        self.screen.release_updates()?;
        self.ask_next()
    }

    fn handle_busy_choice(&mut self, line: Option<&str>) -> anyhow::Result<Option<Exit>> {
        match line.map_or(Some(None), busy::read_busy_choice) {
            None => self.screen.output().aside(busy::PROMPT),
            Some(None) => {
                self.screen.aside(&format!("{}\n", reconnect::reconnect_hint(&self.session)));
                return Ok(Some(Exit::Done));
            }
            Some(Some(choice)) => {
                self.asks_if_busy = false;
                self.if_busy = Some(choice);
                match choice {
                    IfBusy::Wait => self.wait_for_run(Then::SendPrompt),
                    IfBusy::Steer | IfBusy::Queue | IfBusy::Refuse => self.send_prompt(),
                }
                self.after_question()?;
            }
        }
        Ok(None)
    }

    /// Nobody can be asked: it is a no, and the model is told that it is nobody's.
    fn reject_unattended(&mut self, question: RunQuestion) -> anyhow::Result<()> {
        let headline = question_text::question_headline(&question);
        let RunQuestion { permission, tool, options, .. } = question;
        let refusal = answer::reject_once_answer(&options).map(|option| option.option_id.0.to_string());
        if self.screen.is_json() {
            self.screen.event(&events::question_event_json(&tool, &options, refusal.as_deref()))?;
        } else {
            let title = tool.fields.title.as_deref().unwrap_or(&headline);
            self.screen.line(Tone::Warn, &format!("rejected, nobody could be asked: {title}"))?;
            self.screen.aside(
                "  (run it in a terminal, use --policy auto_edit or auto, or allow it by a rule in the settings)\n",
            );
        }
        match refusal {
            Some(option) => self.respond(permission, &option, Some(json!({ "gander/unattended": true }))),
            None => self.connection.client.decline(permission),
        }
        Ok(())
    }

    fn handle_withdrawn(&mut self, id: &RequestId) -> anyhow::Result<()> {
        match self.questions.withdraw(id) {
            Withdrawn::Asked(permission) => {
                self.connection.client.decline(permission);
                self.screen.aside("\n");
                self.screen.line(Tone::Dim, "  answered by another client")?;
                self.after_question()
            }
            Withdrawn::Waiting(permission) => {
                self.connection.client.decline(permission);
                Ok(())
            }
            Withdrawn::Unknown => Ok(()),
        }
    }

    /// Our own turn is cancelled. One that somebody else began is left alone.
    fn handle_interrupt(&mut self) -> anyhow::Result<Option<Exit>> {
        let own = matches!(self.work, Work::Prompt(_) | Work::Steer(_));
        if !own || self.cancelled {
            self.screen.aside("\n");
            if !own {
                self.screen.line(Tone::Dim, &reconnect::left_run_hint(&self.session))?;
            }
            return Ok(Some(if own { Exit::Cancelled } else { Exit::Done }));
        }
        self.cancelled = true;
        self.connection.client.cancel(&self.session);
        for question in self.questions.drain() {
            self.connection.client.decline(question.permission);
        }
        self.screen.release_updates()?;
        self.screen.line(Tone::Warn, "cancelling; ctrl-c again leaves at once")?;
        Ok(None)
    }

    fn fail(&mut self, message: &str) -> anyhow::Result<Exit> {
        if self.screen.is_json() {
            self.screen.event(&events::failed_event_json(message))?;
        } else {
            self.screen.close()?;
            self.screen.line(Tone::Bad, &format!("failed: {message}"))?;
        }
        Ok(Exit::Failed)
    }

    async fn reconnect(&mut self) -> anyhow::Result<()> {
        if matches!(self.host, RunHost::StandaloneClient(_)) {
            bail!("the server ended inside of this process; the session is kept: {}", self.session);
        }
        self.questions.drain();
        self.asks_if_busy = false;
        self.screen.release_updates()?;
        self.resume_after_loss().await
    }
}

/// What a session that refuses a prompt does.
fn turn_busy_state(error: &Error) -> Option<&str> {
    let data = error.data.as_ref().filter(|data| data["reason"] == "session_busy")?;
    data["state"].as_str()
}
