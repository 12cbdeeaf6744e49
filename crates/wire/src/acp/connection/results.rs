//! What became of a client's requests, and how each is answered.

use std::sync::Arc;

use gander_domain::{
    Accepted, Outcome, RunId, ServiceError, SessionCatalog, SessionId, SessionView, SettingsPatch, SlashCommand,
    Timestamp,
};
use serde_json::{Map, Value, json};

use super::attachment::Attachment;
use super::log_meta::session_meta;
use super::{Connection, Held, Prompt, of};
use crate::acp::config_options::{config_options, modes};
use crate::acp::dialect::goosed_hello;
use crate::acp::input::SessionRequest;
use crate::acp::output::Update;
use crate::acp::schema::{
    ListSessionsResponse, Meta, NewSessionResponse, Notice, NoticeSeverity, PromptResponse, ResumeSessionResponse,
    SessionInfo, SessionStatus, SessionStatusResponse, SetSessionConfigOptionResponse, StopReason,
};
use crate::acp::types::{Listed, Presence, Profile, SessionParams, Ticket};
use crate::acp::{error, question, slash_commands, v2};
use crate::jsonrpc::{Error, Place, RequestId, Responder};

/// What an intent's ticket stands for.
#[derive(Debug)]
pub(super) enum Waiting {
    /// An introduction that makes a session, as clients of paper 000 expect.
    Hello(Responder),
    Made {
        responder: Responder,
        opened: Opened,
    },
    Load {
        responder: Option<Responder>,
        session: SessionId,
    },
    Resume {
        responder: Responder,
        session: SessionId,
        opened: Opened,
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
    Slash {
        responder: Responder,
        session: SessionId,
        run: RunId,
    },
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
pub(super) struct Opened {
    /// Its own `_meta`, given back.
    meta: Option<Meta>,
    /// All that is kept for it.
    kept: Option<Value>,
    /// MCP servers that it named and that are not started.
    unstarted: usize,
}

impl Opened {
    /// Of a session that is made.
    pub(super) fn new(params: &SessionParams, profile: &Profile) -> Self {
        let meta = session_meta(params.meta.as_ref());
        Self { meta, kept: params.meta.clone(), ..Self::found(params, profile) }
    }

    /// Of a session that was made before.
    pub(super) fn found(params: &SessionParams, profile: &Profile) -> Self {
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

impl Connection {
    /// A session was made or found. `view` is what it is now; for `Intent::LoadSession` feed its entries from the
    /// first, for all others from the one after `view.head`, or after the head of [`Connection::view`] if that is
    /// older: a session that is open here already goes on where its client is.
    pub fn opened(&mut self, ticket: Ticket, view: SessionView, catalog: Arc<SessionCatalog>) {
        let session = view.session;
        self.peer.out.address(of(session));
        self.speech.turn_to(session);
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Hello(responder)) => {
                self.peer.out.address(Place::default());
                self.peer.respond(responder, &goosed_hello(&self.profile, &view, &catalog));
                self.attach(view, catalog);
            }
            Some(Waiting::Load { responder, .. }) => {
                self.sessions.insert(session, Attachment::replaying(&view, catalog, responder));
            }
            Some(Waiting::Made { responder, opened }) => {
                let response = NewSessionResponse::new(session.to_string())
                    .modes(modes(&catalog, &view.settings))
                    .config_options(config_options(&catalog, &view.settings))
                    .meta(opened.meta);
                self.speech.remember(session, opened.kept.as_ref());
                self.peer.respond(responder, &response);
                self.attach(view, catalog);
                self.introduce(session, opened.unstarted);
            }
            Some(Waiting::Resume { responder, opened, .. }) => {
                let response = ResumeSessionResponse::new()
                    .modes(modes(&catalog, &view.settings))
                    .config_options(config_options(&catalog, &view.settings));
                self.peer.respond(responder, &response);
                self.go_on(view, catalog);
                self.introduce(session, opened.unstarted);
            }
            Some(Waiting::Attach { .. }) => self.go_on(view, catalog),
            other => self.put_back(ticket, other),
        }
    }

    /// Sessions were listed.
    pub fn listed(&mut self, ticket: Ticket, sessions: Vec<Listed>, next_cursor: Option<String>) {
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::List(responder)) => {
                let sessions = sessions.into_iter().map(session_info).collect();
                self.peer.respond(responder, &ListSessionsResponse::new(sessions).next_cursor(next_cursor));
            }
            other => self.put_back(ticket, other),
        }
    }

    /// Whether a session is in use was found out.
    pub fn status(&mut self, ticket: Ticket, presence: Presence) {
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Status(responder)) => {
                let status = match presence {
                    Presence::Open => SessionStatus::Open,
                    Presence::Saved => SessionStatus::Saved,
                };
                self.peer.respond(responder, &SessionStatusResponse::new(status));
            }
            other => self.put_back(ticket, other),
        }
    }

    /// A session was closed, put away or deleted.
    pub fn done(&mut self, ticket: Ticket) {
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Leave { responder, session }) => {
                self.leave(session, &Ok(StopReason::Cancelled));
                self.peer.respond(responder, &json!({}));
            }
            other => self.put_back(ticket, other),
        }
    }

    /// A session has these commands beside those that every session has.
    pub fn offer(&mut self, session: SessionId, offers: &[SlashCommand]) {
        if let Some(attachment) = self.sessions.get(&session) {
            self.peer.out.address(of(session));
            attachment.tell(&mut self.peer.out, &Update::Other(Box::new(slash_commands::available_with(offers))));
        }
    }

    /// A command was accepted. A prompt is answered when its run ends.
    pub fn accepted(&mut self, ticket: Ticket, accepted: Accepted) {
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Prompt(_)) => {}
            Some(Waiting::Steer(responder)) => self.peer.respond(responder, &json!({ "outcome": steered(accepted) })),
            Some(Waiting::Command { responder, result }) => self.peer.respond(responder, &result),
            Some(Waiting::Slash { responder, session, run }) => self.turn_without_model(responder, session, run),
            Some(Waiting::Configure { responder, session, patch, reply }) => {
                self.configured(responder, session, patch, &reply);
            }
            other => self.put_back(ticket, other),
        }
    }

    /// A method of ours was carried out.
    pub fn extended(&mut self, ticket: Ticket, result: &Value) {
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Extension(responder)) => self.peer.respond(responder, result),
            other => self.put_back(ticket, other),
        }
    }

    /// An intent is not carried out.
    pub fn refused(&mut self, ticket: Ticket, refusal: &ServiceError) {
        let error = error::refusal(refusal);
        match self.waiting.remove(&ticket.0) {
            Some(Waiting::Hello(responder)) => {
                self.abilities = None; // it may try again
                self.peer.fail(responder, &error);
            }
            Some(
                Waiting::Made { responder, .. }
                | Waiting::List(responder)
                | Waiting::Status(responder)
                | Waiting::Steer(responder)
                | Waiting::Command { responder, .. }
                | Waiting::Slash { responder, .. }
                | Waiting::Extension(responder)
                | Waiting::Leave { responder, .. }
                | Waiting::Configure { responder, .. },
            ) => self.peer.fail(responder, &error),
            Some(Waiting::Load { responder, session }) => self.not_opened(session, responder, &error),
            Some(Waiting::Resume { responder, session, .. }) => self.not_opened(session, Some(responder), &error),
            Some(Waiting::Attach { session }) => self.not_opened(session, None, &error),
            Some(Waiting::Prompt(run)) => {
                if let Some(prompt) = self.prompts.remove(&run) {
                    self.peer.fail(prompt.responder, &error);
                }
            }
            None => {}
        }
    }

    /// A session that was open here exists no more.
    pub fn gone(&mut self, session: SessionId) {
        self.leave(session, &Err(error::unknown_session(&session.to_string())));
    }

    /// A session cannot be followed any further: its prompts fail, and it may be opened anew.
    pub fn broken(&mut self, session: SessionId, refusal: &ServiceError) {
        self.leave(session, &Err(error::refusal(refusal)));
    }

    /// What can be chosen in a session has changed.
    pub fn catalog_changed(&mut self, session: SessionId, catalog: Arc<SessionCatalog>) {
        if let Some(attachment) = self.sessions.get_mut(&session) {
            attachment.offer(catalog, &mut self.peer.out);
        }
    }

    /// Answers the prompts that wait for a session that is still being opened.
    pub(super) fn drop_held_prompts(&mut self, session: SessionId) {
        let held = self.opening.get_mut(&session).map(std::mem::take).unwrap_or_default();
        for held in held {
            match held.request {
                SessionRequest::Prompt { .. } => {
                    self.peer.respond(held.responder, &PromptResponse::new(StopReason::Cancelled));
                }
                SessionRequest::Slash(_)
                | SessionRequest::Steer { .. }
                | SessionRequest::SetMode { .. }
                | SessionRequest::SetOption { .. } => {
                    self.opening.entry(session).or_default().push(held);
                }
            }
        }
    }

    /// A client that is attached already has not been told everything up to now: it goes on from where it is.
    fn go_on(&mut self, view: SessionView, catalog: Arc<SessionCatalog>) {
        match self.sessions.get(&view.session).map(Attachment::is_replaying) {
            None => self.attach(view, catalog),
            Some(true) => {} // what waits is released at the end of the replay
            Some(false) => self.release(view.session),
        }
    }

    fn attach(&mut self, view: SessionView, catalog: Arc<SessionCatalog>) {
        let session = view.session;
        let attachment = Attachment::live(view, catalog);
        attachment.ask_open_questions(&mut self.peer, self.abilities.unwrap_or_default());
        self.sessions.insert(session, attachment);
        self.release(session);
    }

    /// Tells what can be done in a session; and until MCP servers can be started, that they are not.
    fn introduce(&mut self, session: SessionId, unstarted: usize) {
        let Some(attachment) = self.sessions.get(&session) else { return };
        attachment.tell_commands(&mut self.peer.out);
        let running = attachment.view().is_some_and(|view| view.run.is_some());
        if running && self.abilities.is_some_and(|abilities| abilities.v2) {
            attachment.tell_present(&mut self.peer.out);
        }
        if unstarted > 0 && self.abilities.is_some_and(|abilities| abilities.notices) {
            let detail = format!("{unstarted} MCP servers of the client are not started by this agent");
            let notice = Notice::new(NoticeSeverity::Warning, "MCP servers are not available").description(detail);
            attachment.tell(&mut self.peer.out, &Update::Notice(Box::new(notice)));
        }
    }

    /// Lets go of a request that only looks, so that its answer finds nobody.
    pub(super) fn stop_looking(&mut self, id: &RequestId) -> Option<Responder> {
        let looking = |waiting: &Waiting| match waiting {
            Waiting::List(responder) | Waiting::Status(responder) => responder.id() == id,
            Waiting::Hello(_)
            | Waiting::Made { .. }
            | Waiting::Load { .. }
            | Waiting::Resume { .. }
            | Waiting::Attach { .. }
            | Waiting::Leave { .. }
            | Waiting::Prompt(_)
            | Waiting::Steer(_)
            | Waiting::Command { .. }
            | Waiting::Slash { .. }
            | Waiting::Configure { .. }
            | Waiting::Extension(_) => false,
        };
        let ticket = self.waiting.iter().find_map(|(ticket, waiting)| looking(waiting).then_some(*ticket))?;
        match self.waiting.remove(&ticket) {
            Some(Waiting::List(responder) | Waiting::Status(responder)) => Some(responder),
            _ => None, // no other was looked for
        }
    }

    /// A prompt that was a command is a turn too, which ends at once.
    fn turn_without_model(&mut self, responder: Responder, session: SessionId, run: RunId) {
        if !self.abilities.is_some_and(|abilities| abilities.v2) {
            self.peer.respond(responder, &PromptResponse::new(StopReason::EndTurn));
            return;
        }
        self.peer.out.address(of(session));
        self.peer.respond(responder, &json!({ "messageId": run }));
        if let Some(attachment) = self.sessions.get(&session) {
            let ended = v2::ended(&Outcome::Completed { stop: gander_domain::StopReason::EndTurn }, None);
            attachment.tell(&mut self.peer.out, &Update::Draft(Box::new(ended)));
        }
    }

    fn not_opened(&mut self, session: SessionId, responder: Option<Responder>, error: &Error) {
        let held = self.opening.remove(&session).unwrap_or_default();
        let held = held.into_iter().map(|Held { responder, .. }| responder);
        for responder in responder.into_iter().chain(held) {
            self.peer.fail(responder, error);
        }
    }

    fn configured(&mut self, responder: Responder, session: SessionId, patch: SettingsPatch, reply: &ConfigureReply) {
        let attachment = self.sessions.get_mut(&session);
        let known = attachment.and_then(|attachment| {
            let settings = attachment.configured(patch)?;
            Some(config_options(attachment.catalog(), &settings))
        });
        match (reply, known) {
            (ConfigureReply::Options, Some(options)) => {
                self.peer.respond(responder, &SetSessionConfigOptionResponse::new(options));
            }
            (ConfigureReply::Options, None) => {
                self.peer.respond(responder, &SetSessionConfigOptionResponse::new(Vec::new()));
            }
            (ConfigureReply::Nothing, _) => self.peer.respond(responder, &json!({})),
        }
    }

    /// Lets go of a session: its prompts are answered, its questions withdrawn.
    pub(super) fn leave(&mut self, session: SessionId, outcome: &Result<StopReason, Error>) {
        self.peer.out.address(of(session));
        if let Some(attachment) = self.sessions.remove(&session) {
            let questions = attachment.view().and_then(|view| view.run.as_ref()).map(|run| run.questions.as_slice());
            for question in questions.unwrap_or_default() {
                self.peer.withdraw(&question::request_id(question.id));
            }
        }
        let runs: Vec<RunId> =
            self.prompts.iter().filter(|(_, prompt)| prompt.session == session).map(|(run, _)| *run).collect();
        for Prompt { responder, .. } in runs.iter().filter_map(|run| self.prompts.remove(run)).collect::<Vec<_>>() {
            match outcome {
                Ok(stop) => self.peer.respond(responder, &PromptResponse::new(*stop)),
                Err(error) => self.peer.fail(responder, error),
            }
        }
    }

    /// A ticket that came back by the wrong way still waits: its client is told that something broke here.
    fn put_back(&mut self, ticket: Ticket, waiting: Option<Waiting>) {
        if let Some(waiting) = waiting {
            self.waiting.insert(ticket.0, waiting);
            self.refused(ticket, &ServiceError::Internal("answer does not fit the request".to_owned()));
        }
    }
}

impl Waiting {
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
            | Self::Slash { .. }
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

fn session_info(listed: Listed) -> SessionInfo {
    let time = |at: Timestamp| jiff::Timestamp::from_microsecond(at.micros()).ok();
    let (created_at, updated_at) = (time(listed.created_at), time(listed.updated_at));
    SessionInfo::new(listed.session.to_string(), listed.workspace)
        .additional_directories(listed.folders.into_iter().map(Into::into).collect())
        .title(listed.title)
        .updated_at(updated_at.map(|at| at.to_string()))
        .archived(listed.archived)
        .meta(Map::from_iter(created_at.map(|at| ("gander/createdAt".to_owned(), json!(at.to_string())))))
}

/// The words that other agents use.
fn steered(accepted: Accepted) -> &'static str {
    match accepted {
        Accepted::Steered(_) | Accepted::Repeated(_) | Accepted::Done => "injected",
        Accepted::Started(_) | Accepted::Queued(_) => "startedNewTurn",
    }
}
