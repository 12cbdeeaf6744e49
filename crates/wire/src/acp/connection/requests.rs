//! What a client asks, and which intent that makes.

use gander_domain::{Command, Ids, IfBusy, Part, RunId, SessionId, SettingsPatch};
use serde_json::{Value, json};

use super::results::{ConfigureReply, Opened, Waiting};
use super::{Connection, Held, Prompt};
use crate::acp::abilities::Abilities;
use crate::acp::dialect::Dialect;
use crate::acp::error::{cancelled, login_needed, not_initialized};
use crate::acp::input::{self, Hello, Request, SessionRequest, WhenIdle};
use crate::acp::types::{Intent, SessionParams, Ticket};
use crate::acp::{config_options, initialize, v2};
use crate::jsonrpc::{Code, Error, Params, RequestId, Responder};

/// How many requests may wait for one session to open.
const MAX_HELD: usize = 64;

impl Connection {
    pub(super) fn request(&mut self, method: &str, params: Params<'_>, responder: Responder, ids: &mut dyn Ids) {
        let heard = params.value().and_then(|params| match self.speech.refuses(method, &params) {
            Some(error) => Err(error),
            None => Ok(self.speech.hear(method, params)),
        });
        let request = heard.and_then(|(method, params)| input::request(method, params, &self.profile));
        match self.admit(method, request) {
            Ok(request) => self.handle(request, responder, ids),
            Err(error) => self.peer.fail(responder, &error),
        }
    }

    pub(super) fn notification(&mut self, method: &str, params: Params<'_>) {
        let heard = params.value().map(|params| self.speech.hear(method, params)).ok();
        let cancelled = heard.filter(|(method, _)| *method == "session/cancel");
        let session = cancelled.and_then(|(_, params)| input::cancel(params).ok());
        match session.filter(|_| self.abilities.is_some() && self.logged_in) {
            Some(session) => self.cancel(session),
            None => self.peer.counters.ignored_notifications += 1,
        }
    }

    /// The caller takes a request back: a prompt's run is cancelled, a load goes on in silence, what waits or only looks
    /// is dropped, and what changes something is answered with what came of it.
    pub(super) fn take_back(&mut self, id: &RequestId) {
        if let Some((run, prompt)) = self.prompts.iter().find(|(_, prompt)| prompt.responder.id() == id) {
            let command = Command::Cancel { run: Some(*run), origin: self.origin.clone() };
            self.intents.push_back(Intent::Command { session: prompt.session, command, ticket: None });
            return;
        }
        let held = self.opening.values_mut().find_map(|held| {
            let index = held.iter().position(|held| held.responder.id() == id)?;
            Some(held.remove(index).responder)
        });
        let loading = held.or_else(|| self.waiting.values_mut().find_map(|waiting| waiting.stop_loading(id)));
        let looking = loading.or_else(|| self.stop_looking(id));
        let replaying =
            looking.or_else(|| self.sessions.values_mut().find_map(|attachment| attachment.stop_replaying(id)));
        if let Some(responder) = replaying {
            self.peer.fail(responder, &cancelled());
        }
    }

    /// Hands over what waited for a session that is open now.
    pub(super) fn release(&mut self, session: SessionId) {
        for held in self.opening.remove(&session).unwrap_or_default() {
            self.act(session, held);
        }
    }

    /// First `initialize`, once; after a logout nothing but a login.
    fn admit(&self, method: &str, request: Result<Request, Error>) -> Result<Request, Error> {
        let introduced = self.abilities.is_some();
        match request {
            Err(error) if error.is(Code::MethodNotFound) => Err(error),
            Ok(Request::Initialize(_)) if introduced => Err(Error::new(Code::InvalidRequest, "already initialized")),
            Err(_) if !introduced && method != "initialize" => Err(not_initialized()),
            Ok(request) if !introduced && !matches!(request, Request::Initialize(_)) => Err(not_initialized()),
            Ok(request) if !self.logged_in && !matches!(request, Request::Authenticate { .. } | Request::Logout) => {
                Err(login_needed())
            }
            request => request,
        }
    }

    fn handle(&mut self, request: Request, responder: Responder, ids: &mut dyn Ids) {
        match request {
            Request::Initialize(hello) => self.initialize(hello, responder),
            Request::Authenticate { method } => self.log_in(&method, responder),
            Request::Logout => self.log_out(responder),
            Request::New(params) => {
                let ticket = self.ticket(Waiting::Made { responder, opened: Opened::new(&params, &self.profile) });
                self.intents.push_back(Intent::NewSession { ticket, params });
            }
            Request::Load(session, params) => {
                let ticket = self.opens(session, Waiting::Load { responder: Some(responder), session });
                self.intents.push_back(Intent::LoadSession { ticket, session, params });
            }
            Request::Resume(session, params) => {
                let opened = Opened::found(&params, &self.profile);
                let ticket = self.opens(session, Waiting::Resume { responder, session, opened });
                self.intents.push_back(Intent::ResumeSession { ticket, session, params });
            }
            Request::Fork(session, params) => self.fork(session, params, responder),
            Request::List { cwd, cursor, archived } => {
                let ticket = self.ticket(Waiting::List(responder));
                self.intents.push_back(Intent::ListSessions { ticket, cwd, cursor, archived });
            }
            Request::Close(session) => {
                self.leaves(session, responder, |ticket| Intent::CloseSession { ticket, session })
            }
            Request::Delete(session) => {
                self.leaves(session, responder, |ticket| Intent::DeleteSession { ticket, session });
            }
            Request::Archive(session) => {
                self.leaves(session, responder, |ticket| Intent::ArchiveSession { ticket, session });
            }
            Request::Unarchive(session) => {
                self.command(session, Command::Archive { archived: false }, responder, json!({}));
            }
            Request::SetTitle(session, title) => {
                let result = json!({ "title": title });
                self.command(session, Command::SetTitle { title }, responder, result);
            }
            Request::Status(session) => {
                let ticket = self.ticket(Waiting::Status(responder));
                self.intents.push_back(Intent::SessionStatus { ticket, session });
            }
            Request::Cancel(session) => {
                self.cancel(session);
                self.peer.respond(responder, &json!({}));
            }
            Request::Session(session, request) => {
                self.in_session(session, Held { responder, run: RunId::make(ids), request });
            }
            Request::Extension { method, params } => {
                let ticket = self.ticket(Waiting::Extension(responder));
                self.intents.push_back(Intent::Extension { ticket, method, params });
            }
        }
    }

    fn initialize(&mut self, hello: Hello, responder: Responder) {
        let v2 = self.speech.dialect() == Dialect::V2;
        let Abilities { notices, compaction, .. } = hello.abilities;
        self.abilities =
            Some(Abilities { v2, notices: notices || v2, compaction: compaction || v2, ..hello.abilities });
        if v2 {
            self.peer.respond(responder, &v2::hello(&self.profile));
            return;
        }
        if self.speech.dialect() == Dialect::Goosed {
            let ticket = self.ticket(Waiting::Hello(responder));
            self.intents.push_back(Intent::FirstSession { ticket });
            return;
        }
        let mut response = serde_json::to_value(initialize::response(&self.profile)).unwrap_or_default();
        if hello.version.is_string() {
            response["protocolVersion"] = hello.version; // who says it as a text wants to hear the same text
        }
        self.peer.respond(responder, &response);
    }

    /// The transport has decided who comes in: a login only takes a logout back.
    fn log_in(&mut self, method: &str, responder: Responder) {
        if self.profile.logins.iter().any(|login| login.id == method) {
            self.logged_in = true;
            self.peer.respond(responder, &json!({}));
        } else {
            self.peer.fail(responder, &Error::invalid_params(format!("no such authentication method: {method}")));
        }
    }

    fn log_out(&mut self, responder: Responder) {
        self.logged_in = false;
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.leave(session, &Err(login_needed()));
            self.intents.push_back(Intent::Detach { session });
        }
        self.peer.out.address(crate::jsonrpc::Place::default());
        self.peer.respond(responder, &json!({}));
    }

    fn fork(&mut self, session: SessionId, params: SessionParams, responder: Responder) {
        let ticket = self.ticket(Waiting::Made { responder, opened: Opened::new(&params, &self.profile) });
        self.intents.push_back(Intent::ForkSession { ticket, session, params });
    }

    fn leaves(&mut self, session: SessionId, responder: Responder, intent: impl FnOnce(Ticket) -> Intent) {
        let ticket = self.ticket(Waiting::Leave { responder, session });
        self.intents.push_back(intent(ticket));
    }

    /// Commands a session and answers with this result once it is done.
    fn command(&mut self, session: SessionId, command: Command, responder: Responder, result: Value) {
        let ticket = Some(self.ticket(Waiting::Command { responder, result }));
        self.intents.push_back(Intent::Command { session, command, ticket });
    }

    fn opens(&mut self, session: SessionId, waiting: Waiting) -> Ticket {
        self.opening.entry(session).or_default();
        self.ticket(waiting)
    }

    /// Acts on a request if its session is open here, else opens it first.
    fn in_session(&mut self, session: SessionId, held: Held) {
        if let Some(waiting) = self.opening.get_mut(&session) {
            if waiting.len() < MAX_HELD {
                waiting.push(held);
            } else {
                let error = Error::new(Code::InvalidRequest, "too many requests wait for this session to open");
                self.peer.fail(held.responder, &error);
            }
        } else if self.sessions.contains_key(&session) {
            self.act(session, held);
        } else {
            let ticket = self.opens(session, Waiting::Attach { session });
            self.intents.push_back(Intent::Attach { ticket, session });
            self.in_session(session, held);
        }
    }

    fn act(&mut self, session: SessionId, held: Held) {
        let Held { responder, run, request } = held;
        match request {
            SessionRequest::Prompt { parts, meta } => {
                let meta = self.marked(meta, responder.id());
                self.prompts.insert(run, Prompt::new(responder, session));
                let origin = self.origin.clone();
                let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta };
                let ticket = Some(self.ticket(Waiting::Prompt(run)));
                self.intents.push_back(Intent::Command { session, command, ticket });
            }
            SessionRequest::Slash(slash) => {
                let ticket = Some(self.ticket(Waiting::Slash { responder, session, run }));
                self.intents.push_back(Intent::Command { session, command: slash.command(), ticket });
            }
            SessionRequest::Steer { parts, idle } => self.steer(session, run, parts, idle, responder),
            SessionRequest::SetMode { mode } => {
                let patch =
                    self.patch(session, |catalog, settings| config_options::mode_patch(catalog, settings, &mode));
                self.configure(session, responder, patch, ConfigureReply::Nothing);
            }
            SessionRequest::SetOption { option, value } => {
                let patch =
                    self.patch(session, |catalog, settings| config_options::patch(catalog, settings, &option, &value));
                self.configure(session, responder, patch, ConfigureReply::Options);
            }
        }
    }

    fn steer(&mut self, session: SessionId, run: RunId, parts: Vec<Part>, idle: WhenIdle, responder: Responder) {
        let attachment = self.sessions.get_mut(&session);
        let running = attachment.as_ref().and_then(|open| open.view()).is_some_and(|view| view.run.is_some());
        if !running && idle == WhenIdle::Decline {
            self.peer.respond(responder, &json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
            return;
        }
        if let Some(attachment) = attachment {
            attachment.expect_echo(parts.clone());
        }
        let command = Command::Prompt { run, origin: self.origin.clone(), parts, if_busy: IfBusy::Steer, meta: None };
        let ticket = Some(self.ticket(Waiting::Steer(responder)));
        self.intents.push_back(Intent::Command { session, command, ticket });
    }

    fn patch(
        &self,
        session: SessionId,
        read: impl FnOnce(&gander_domain::SessionCatalog, &gander_domain::Settings) -> Result<SettingsPatch, Error>,
    ) -> Result<SettingsPatch, Error> {
        let attachment = self.sessions.get(&session);
        let known = attachment.and_then(|attachment| Some((attachment.catalog(), attachment.view()?)));
        let Some((catalog, view)) = known else {
            return Err(crate::acp::error::unknown_session(&session.to_string()));
        };
        read(catalog, &view.settings)
    }

    fn configure(
        &mut self,
        session: SessionId,
        responder: Responder,
        patch: Result<SettingsPatch, Error>,
        reply: ConfigureReply,
    ) {
        match patch {
            Ok(patch) => {
                let command = Command::Configure { patch: patch.clone() };
                let ticket = Some(self.ticket(Waiting::Configure { responder, session, patch, reply }));
                self.intents.push_back(Intent::Command { session, command, ticket });
            }
            Err(error) => self.peer.fail(responder, &error),
        }
    }

    fn cancel(&mut self, session: SessionId) {
        self.drop_held_prompts(session);
        let command = Command::Cancel { run: None, origin: self.origin.clone() };
        self.intents.push_back(Intent::Command { session, command, ticket: None });
    }
}
