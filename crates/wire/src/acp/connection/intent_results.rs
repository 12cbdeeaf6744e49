//! What became of a client's requests, and how each is answered.

use std::sync::Arc;

use gander_domain::{
    Accepted, Outcome, RunId, Seq, ServiceError, SessionCatalog, SessionId, SessionView, SettingsPatch, SlashCommand,
    Timestamp,
};
use serde_json::{Map, Value, json};

use super::attachment::Attachment;
use super::log_meta::session_log_meta;
use super::v2_updates::raw_v2_update;
use super::{ActivePrompt, Connection, QueuedRequest, session_message_origin};
use crate::acp::config_options::{config_options, mode_option_state};
use crate::acp::dialect::goosed_hello;
use crate::acp::projection::SessionUpdateOut;
use crate::acp::requests::SessionRequest;
use crate::acp::schema::{
    ListSessionsResponse, Meta, NewSessionResponse, Notice, NoticeSeverity, PromptResponse, ResumeSessionResponse,
    SessionInfo, SessionStatus, SessionStatusResponse, SetSessionConfigOptionResponse, StopReason,
};
use crate::acp::types::{AgentProfile, IntentTicket, ListedSession, Presence, SessionParams};
use crate::acp::{error, question, slash_commands, v2};
use crate::jsonrpc::{Error, MessageOrigin, RequestId, Responder};

/// In the `_meta` of the answer to `session/resume`: the place of the last entry that is not told as an update.
const HEAD_META: &str = "gander/head";

/// What an intent's ticket stands for.
#[derive(Debug)]
pub(super) enum PendingRequest {
    /// An introduction that makes a session, as clients of the legacy goose dialect expect.
    Hello(Responder),
    Made {
        responder: Responder,
        opened: OpenedSession,
    },
    Load {
        responder: Option<Responder>,
        session: SessionId,
    },
    Resume {
        responder: Responder,
        session: SessionId,
        opened: OpenedSession,
    },
    Attach {
        session: SessionId,
    },
    List(Responder),
    Leave {
        responder: Responder,
        session: SessionId,
    },
    Prompt(RunId),
    Steer(Responder),
    Command {
        responder: Responder,
        result: Value,
    },
    Status(Responder),
    Configure {
        responder: Responder,
        session: SessionId,
        patch: SettingsPatch,
        reply: ConfigureReply,
    },
    Extension(Responder),
}

/// What a client is told of a session that it made or found.
#[derive(Debug, Default)]
pub(super) struct OpenedSession {
    /// Its own `_meta`, given back.
    meta: Option<Meta>,
    /// All that is kept for it.
    kept: Option<Value>,
    /// MCP servers that it named and that are not started.
    unstarted: usize,
}

impl OpenedSession {
    /// Of a session that is made.
    pub(super) fn new(params: &SessionParams, profile: &AgentProfile) -> Self {
        let meta = session_log_meta(params.meta.as_ref());
        Self { meta, kept: params.meta.clone(), ..Self::for_existing(params, profile) }
    }

    /// Of a session that was made before.
    pub(super) fn for_existing(params: &SessionParams, profile: &AgentProfile) -> Self {
        let unstarted = if profile.mcp_stdio { 0 } else { params.mcp_servers.len() };
        Self { meta: None, kept: None, unstarted }
    }
}

/// What a change of settings is answered with.
#[derive(Debug)]
pub(super) enum ConfigureReply {
    Nothing,
    Options,
}

/// Where in the log a client's updates begin: what it reads as history ends there.
fn result_head_meta(head: Seq) -> Meta {
    Meta::from_iter([(HEAD_META.to_owned(), json!(head))])
}

impl Connection {
    /// A session was made or found. `view` is what it is now; for `Intent::LoadSession` feed its entries from the
    /// first, for all others from the one after `view.head`, or after the head of [`Connection::view`] if that is
    /// older: a session that is open here already goes on where its client is.
    pub fn handle_opened(&mut self, ticket: IntentTicket, view: SessionView, catalog: Arc<SessionCatalog>) {
        let session = view.session;
        self.peer.out.set_origin(session_message_origin(session));
        self.speech.set_current_session(session);
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Hello(responder)) => {
                self.peer.out.set_origin(MessageOrigin::default());
                self.peer.respond_result(responder, &goosed_hello(&self.profile, &view, &catalog));
                self.attach_session(view, catalog);
            }
            Some(PendingRequest::Load { responder, .. }) => {
                self.sessions.insert(session, Attachment::attach_replaying(&view, catalog, responder));
            }
            Some(PendingRequest::Made { responder, opened }) => {
                let response = NewSessionResponse::new(session.to_string())
                    .modes(mode_option_state(&catalog, &view.settings))
                    .config_options(config_options(&catalog, &view.settings))
                    .meta(opened.meta);
                self.speech.remember_session(session, opened.kept.as_ref());
                self.peer.respond_result(responder, &response);
                // A session that is begun anew may be open here already.
                self.continue_attached(view, catalog);
                self.send_introduction(session, opened.unstarted);
            }
            Some(PendingRequest::Resume { responder, opened, .. }) => {
                let told = self.view(session).map_or(view.head, |told| told.head);
                let response = ResumeSessionResponse::new()
                    .modes(mode_option_state(&catalog, &view.settings))
                    .config_options(config_options(&catalog, &view.settings))
                    .meta(result_head_meta(told));
                self.peer.respond_result(responder, &response);
                self.continue_attached(view, catalog);
                self.send_introduction(session, opened.unstarted);
            }
            Some(PendingRequest::Attach { .. }) => self.continue_attached(view, catalog),
            other => self.restore_ticket(ticket, other),
        }
    }

    /// Sessions were listed.
    pub fn handle_listed(&mut self, ticket: IntentTicket, sessions: Vec<ListedSession>, next_cursor: Option<String>) {
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::List(responder)) => {
                let sessions = sessions.into_iter().map(listed_session_info).collect();
                self.peer.respond_result(responder, &ListSessionsResponse::new(sessions).next_cursor(next_cursor));
            }
            other => self.restore_ticket(ticket, other),
        }
    }

    /// Whether a session is in use was found out.
    pub fn handle_status(&mut self, ticket: IntentTicket, presence: Presence) {
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Status(responder)) => {
                let status = match presence {
                    Presence::Open => SessionStatus::Open,
                    Presence::Saved => SessionStatus::Saved,
                };
                self.peer.respond_result(responder, &SessionStatusResponse::new(status));
            }
            other => self.restore_ticket(ticket, other),
        }
    }

    /// A session was closed, put away or deleted.
    pub fn handle_done(&mut self, ticket: IntentTicket) {
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Leave { responder, session }) => {
                self.detach_session(session, &Ok(StopReason::Cancelled));
                self.peer.respond_result(responder, &json!({}));
            }
            other => self.restore_ticket(ticket, other),
        }
    }

    /// A session has these commands.
    pub fn offer_commands(&mut self, session: SessionId, commands: &[SlashCommand]) {
        if let Some(attachment) = self.sessions.get(&session) {
            self.peer.out.set_origin(session_message_origin(session));
            attachment.send_update(
                &mut self.peer.out,
                &SessionUpdateOut::Other(Box::new(slash_commands::available_slash_commands_update(commands))),
            );
        }
    }

    /// A command was accepted. A prompt is answered when its run ends.
    pub fn handle_accepted(&mut self, ticket: IntentTicket, accepted: Accepted) {
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Prompt(run)) => match accepted {
                Accepted::Steered(active) => self.attach_to_active_prompt(run, active),
                Accepted::Done => self.answer_command_within_run(run),
                Accepted::Started(_) | Accepted::Queued(_) | Accepted::Repeated(_) => {}
            },
            Some(PendingRequest::Steer(responder)) => {
                self.peer.respond_result(responder, &json!({ "outcome": steer_result_outcome(accepted) }))
            }
            Some(PendingRequest::Command { responder, result }) => self.peer.respond_result(responder, &result),
            Some(PendingRequest::Configure { responder, session, patch, reply }) => {
                self.answer_configured(responder, session, patch, &reply);
            }
            other => self.restore_ticket(ticket, other),
        }
    }

    /// A prompt was handed to the running turn: it is answered when that one ends, which may have happened meanwhile.
    fn attach_to_active_prompt(&mut self, run: RunId, active: RunId) {
        let Some(prompt) = self.prompts.remove(&run) else { return };
        if let Some(known) = self.prompts.get_mut(&active) {
            known.steered.extend(prompt.into_responders());
            return;
        }
        let view = self.sessions.get(&prompt.session).and_then(|attachment| attachment.view());
        let ended = view.and_then(|view| view.ended.iter().find(|(ended, _)| *ended == active));
        match ended.map(|(_, outcome)| error::acp_prompt_outcome_or_error(outcome)) {
            Some(Ok(stop)) => self.peer.respond_result(prompt.responder, &PromptResponse::new(stop)),
            Some(Err(error)) => self.peer.respond_error(prompt.responder, &error),
            None => drop(self.prompts.insert(active, ActivePrompt { echoed: true, ..prompt })),
        }
    }

    /// A method of ours was carried out.
    pub fn handle_extension_result(&mut self, ticket: IntentTicket, result: &Value) {
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Extension(responder)) => self.peer.respond_result(responder, result),
            other => self.restore_ticket(ticket, other),
        }
    }

    /// An intent is not carried out.
    pub fn handle_refusal(&mut self, ticket: IntentTicket, refusal: &ServiceError) {
        let error = error::acp_service_error(refusal);
        match self.waiting.remove(&ticket.0) {
            Some(PendingRequest::Hello(responder)) => {
                self.abilities = None; // it may try again
                self.peer.respond_error(responder, &error);
            }
            Some(
                PendingRequest::Made { responder, .. }
                | PendingRequest::List(responder)
                | PendingRequest::Status(responder)
                | PendingRequest::Steer(responder)
                | PendingRequest::Command { responder, .. }
                | PendingRequest::Extension(responder)
                | PendingRequest::Leave { responder, .. }
                | PendingRequest::Configure { responder, .. },
            ) => self.peer.respond_error(responder, &error),
            Some(PendingRequest::Load { responder, session }) => self.fail_open(session, responder, &error),
            Some(PendingRequest::Resume { responder, session, .. }) => self.fail_open(session, Some(responder), &error),
            Some(PendingRequest::Attach { session }) => self.fail_open(session, None, &error),
            Some(PendingRequest::Prompt(run)) => {
                if let Some(prompt) = self.prompts.remove(&run) {
                    self.peer.respond_error(prompt.responder, &error);
                }
            }
            None => {}
        }
    }

    /// A session that was open here exists no more.
    pub fn handle_session_gone(&mut self, session: SessionId) {
        self.detach_session(session, &Err(error::acp_unknown_session_error(&session.to_string())));
    }

    /// A session cannot be followed any further: its prompts fail, and it may be opened anew.
    pub fn handle_session_broken(&mut self, session: SessionId, refusal: &ServiceError) {
        self.detach_session(session, &Err(error::acp_service_error(refusal)));
    }

    /// What can be chosen in a session has changed.
    pub fn handle_catalog_changed(&mut self, session: SessionId, catalog: Arc<SessionCatalog>) {
        if let Some(attachment) = self.sessions.get_mut(&session) {
            attachment.set_catalog(catalog, &mut self.peer.out);
        }
    }

    /// Answers the prompts that wait for a session that is still being opened.
    pub(super) fn drop_queued_prompts(&mut self, session: SessionId) {
        let held = self.opening.get_mut(&session).map(std::mem::take).unwrap_or_default();
        for held in held {
            match held.request {
                SessionRequest::Prompt { .. } => {
                    self.peer.respond_result(held.responder, &PromptResponse::new(StopReason::Cancelled));
                }
                SessionRequest::Wait
                | SessionRequest::Steer { .. }
                | SessionRequest::SetMode { .. }
                | SessionRequest::SetOption { .. } => {
                    self.opening.entry(session).or_default().push(held);
                }
            }
        }
    }

    /// A client that is attached already has not been told everything up to now: it goes on from where it is.
    fn continue_attached(&mut self, view: SessionView, catalog: Arc<SessionCatalog>) {
        match self.sessions.get(&view.session).map(Attachment::is_replaying) {
            None => self.attach_session(view, catalog),
            Some(true) => {} // what waits is released at the end of the replay
            Some(false) => self.release_queued(view.session),
        }
    }

    fn attach_session(&mut self, view: SessionView, catalog: Arc<SessionCatalog>) {
        let session = view.session;
        let mut attachment = Attachment::attach_live(view, catalog);
        attachment.ask_open_questions(&mut self.peer, self.abilities.unwrap_or_default());
        self.sessions.insert(session, attachment);
        self.release_queued(session);
    }

    /// Tells what can be done in a session; and until MCP servers can be started, that they are not.
    fn send_introduction(&mut self, session: SessionId, unstarted: usize) {
        let Some(attachment) = self.sessions.get(&session) else { return };
        attachment.send_commands(&mut self.peer.out);
        let running = attachment.view().is_some_and(|view| view.run.is_some());
        if running && self.abilities.is_some_and(|abilities| abilities.v2) {
            attachment.send_present_v2_state(&mut self.peer.out);
        }
        if unstarted > 0 && self.abilities.is_some_and(|abilities| abilities.notices) {
            let detail = format!("{unstarted} MCP servers of the client are not started by this agent");
            let notice = Notice::new(NoticeSeverity::Warning, "MCP servers are not available").description(detail);
            attachment.send_update(&mut self.peer.out, &SessionUpdateOut::Notice(Box::new(notice)));
        }
    }

    /// Lets go of a request that only looks, so that its answer finds nobody.
    pub(super) fn drop_pending_read(&mut self, id: &RequestId) -> Option<Responder> {
        let looking = |waiting: &PendingRequest| match waiting {
            PendingRequest::List(responder) | PendingRequest::Status(responder) => responder.id() == id,
            PendingRequest::Hello(_)
            | PendingRequest::Made { .. }
            | PendingRequest::Load { .. }
            | PendingRequest::Resume { .. }
            | PendingRequest::Attach { .. }
            | PendingRequest::Leave { .. }
            | PendingRequest::Prompt(_)
            | PendingRequest::Steer(_)
            | PendingRequest::Command { .. }
            | PendingRequest::Configure { .. }
            | PendingRequest::Extension(_) => false,
        };
        let ticket = self.waiting.iter().find_map(|(ticket, waiting)| looking(waiting).then_some(*ticket))?;
        match self.waiting.remove(&ticket) {
            Some(PendingRequest::List(responder) | PendingRequest::Status(responder)) => Some(responder),
            _ => None, // no other was looked for
        }
    }

    /// A command that the session carried out in the middle of another run is a turn too, which ends at once.
    fn answer_command_within_run(&mut self, run: RunId) {
        let Some(ActivePrompt { responder, session, .. }) = self.prompts.remove(&run) else { return };
        if !self.abilities.is_some_and(|abilities| abilities.v2) {
            self.peer.respond_result(responder, &PromptResponse::new(StopReason::EndTurn));
            return;
        }
        self.peer.out.set_origin(session_message_origin(session));
        self.peer.respond_result(responder, &json!({ "messageId": run }));
        if let Some(attachment) = self.sessions.get(&session) {
            let ended = v2::v2_run_end_update(&Outcome::Completed { stop: gander_domain::StopReason::EndTurn }, None);
            attachment.send_update(&mut self.peer.out, &raw_v2_update(ended));
        }
    }

    fn fail_open(&mut self, session: SessionId, responder: Option<Responder>, error: &Error) {
        let held = self.opening.remove(&session).unwrap_or_default();
        let held = held.into_iter().map(|QueuedRequest { responder, .. }| responder);
        for responder in responder.into_iter().chain(held) {
            self.peer.respond_error(responder, error);
        }
    }

    fn answer_configured(
        &mut self,
        responder: Responder,
        session: SessionId,
        patch: SettingsPatch,
        reply: &ConfigureReply,
    ) {
        // A dialect may have options of its own for the session.
        self.peer.out.set_origin(session_message_origin(session));
        let attachment = self.sessions.get_mut(&session);
        let known = attachment.and_then(|attachment| {
            let settings = attachment.apply_accepted_patch(patch)?;
            Some(config_options(attachment.catalog(), &settings))
        });
        match (reply, known) {
            (ConfigureReply::Options, Some(options)) => {
                self.peer.respond_result(responder, &SetSessionConfigOptionResponse::new(options));
            }
            (ConfigureReply::Options, None) => {
                self.peer.respond_result(responder, &SetSessionConfigOptionResponse::new(Vec::new()));
            }
            (ConfigureReply::Nothing, _) => self.peer.respond_result(responder, &json!({})),
        }
    }

    /// Lets go of a session: its prompts are answered, its questions withdrawn.
    pub(super) fn detach_session(&mut self, session: SessionId, outcome: &Result<StopReason, Error>) {
        self.peer.out.set_origin(session_message_origin(session));
        if let Some(attachment) = self.sessions.remove(&session) {
            let questions = attachment.view().and_then(|view| view.run.as_ref()).map(|run| run.questions.as_slice());
            for question in questions.unwrap_or_default() {
                self.peer.cancel_request(&question::acp_question_request_id(question.id));
            }
        }
        let runs: Vec<RunId> =
            self.prompts.iter().filter(|(_, prompt)| prompt.session == session).map(|(run, _)| *run).collect();
        let prompts: Vec<ActivePrompt> = runs.iter().filter_map(|run| self.prompts.remove(run)).collect();
        for responder in prompts.into_iter().flat_map(ActivePrompt::into_responders) {
            match outcome {
                Ok(stop) => self.peer.respond_result(responder, &PromptResponse::new(*stop)),
                Err(error) => self.peer.respond_error(responder, error),
            }
        }
    }

    /// A ticket that came back by the wrong way still waits: its client is told that something broke here.
    fn restore_ticket(&mut self, ticket: IntentTicket, waiting: Option<PendingRequest>) {
        if let Some(waiting) = waiting {
            self.waiting.insert(ticket.0, waiting);
            self.handle_refusal(ticket, &ServiceError::Internal("answer does not fit the request".to_owned()));
        }
    }
}

impl PendingRequest {
    /// Takes the responder of this load, so that it goes on in silence.
    pub(super) fn stop_loading(&mut self, id: &RequestId) -> Option<Responder> {
        match self {
            Self::Load { responder, .. } if responder.as_ref().is_some_and(|responder| responder.id() == id) => {
                responder.take()
            }
            Self::Hello(_)
            | Self::Made { .. }
            | Self::Steer(_)
            | Self::Command { .. }
            | Self::Status(_)
            | Self::Load { .. }
            | Self::Resume { .. }
            | Self::Attach { .. }
            | Self::List(_)
            | Self::Leave { .. }
            | Self::Prompt(_)
            | Self::Configure { .. }
            | Self::Extension(_) => None,
        }
    }
}

fn listed_session_info(listed: ListedSession) -> SessionInfo {
    let time = |at: Timestamp| jiff::Timestamp::from_microsecond(at.as_micros()).ok();
    let (created_at, updated_at) = (time(listed.created_at), time(listed.updated_at));
    SessionInfo::new(listed.session.to_string(), listed.workspace)
        .additional_directories(listed.folders.into_iter().map(Into::into).collect())
        .title(listed.title)
        .updated_at(updated_at.map(|at| at.to_string()))
        .archived(listed.archived)
        .meta(Map::from_iter(created_at.map(|at| ("gander/createdAt".to_owned(), json!(at.to_string())))))
}

/// The words that other agents use.
fn steer_result_outcome(accepted: Accepted) -> &'static str {
    match accepted {
        Accepted::Steered(_) | Accepted::Repeated(_) | Accepted::Done => "injected",
        Accepted::Started(_) | Accepted::Queued(_) => "startedNewTurn",
    }
}
