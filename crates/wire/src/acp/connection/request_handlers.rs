//! What a client asks, and which intent that makes.

use gander_domain::roster::is_same_roster_name;
use gander_domain::{Command, IdGenerator, IfBusy, LoadSession, Part, RunId, SessionId, SettingsPatch};
use serde_json::{Value, json};

use super::intent_results::{ConfigureReply, OpenedSession, PendingRequest};
use super::{ActivePrompt, Connection, QueuedRequest};
use crate::acp::abilities::ClientAbilities;
use crate::acp::dialect::{Dialect, aptove};
use crate::acp::error::{acp_cancelled_error, acp_login_needed_error, acp_not_initialized_error};
use crate::acp::requests::{self, ClientRequest, InitializeParams, SessionRequest, WhenIdle};
use crate::acp::types::{Intent, IntentTicket, SessionParams};
use crate::acp::{config_options, initialize, v2};
use crate::jsonrpc::{Code, Error, Params, RequestId, Responder};

/// How many requests may wait for one session to open.
const MAX_QUEUED_REQUESTS: usize = 64;

impl Connection {
    pub(super) fn handle_request(
        &mut self,
        method: &str,
        params: Params<'_>,
        responder: Responder,
        ids: &mut dyn IdGenerator,
    ) {
        let heard = params.value().and_then(|params| match self.speech.v2_refusal(method, &params) {
            Some(error) => Err(error),
            None => Ok(self.speech.normalize_request(method, params)),
        });
        let request =
            heard.and_then(|(method, params)| requests::read_acp_client_request(method, params, &self.profile));
        match self.check_stage(method, request) {
            Ok(request) => self.dispatch_request(request, responder, ids),
            Err(error) => self.peer.respond_error(responder, &error),
        }
    }

    pub(super) fn handle_notification(&mut self, method: &str, params: Params<'_>) {
        let heard = params.value().map(|params| self.speech.normalize_request(method, params)).ok();
        let cancelled = heard.filter(|(method, _)| *method == "session/cancel");
        let session = cancelled.and_then(|(_, params)| requests::read_acp_cancelled_session(params).ok());
        match session.filter(|_| self.abilities.is_some() && self.logged_in) {
            Some(session) => self.cancel_run(session),
            None => self.peer.counters.ignored_notifications += 1,
        }
    }

    /// The caller takes a request back: a prompt's run is cancelled, a load goes on in silence, what waits or only looks
    /// is dropped, and what changes something is answered with what came of it.
    pub(super) fn cancel_request(&mut self, id: &RequestId) {
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
        let looking = loading.or_else(|| self.drop_pending_read(id));
        let replaying =
            looking.or_else(|| self.sessions.values_mut().find_map(|attachment| attachment.take_load_responder(id)));
        if let Some(responder) = replaying {
            self.peer.respond_error(responder, &acp_cancelled_error());
        }
    }

    /// Hands over what waited for a session that is open now.
    pub(super) fn release_queued(&mut self, session: SessionId) {
        for held in self.opening.remove(&session).unwrap_or_default() {
            self.run_queued(session, held);
        }
    }

    /// First `initialize`, once; after a logout nothing but a login.
    fn check_stage(&self, method: &str, request: Result<ClientRequest, Error>) -> Result<ClientRequest, Error> {
        let introduced = self.abilities.is_some();
        match request {
            Err(error) if error.has_code(Code::MethodNotFound) => Err(error),
            Ok(ClientRequest::Initialize(_)) if introduced => {
                Err(Error::new(Code::InvalidRequest, "already initialized"))
            }
            Ok(request) if introduced && !self.is_offered(&request) => Err(Error::method_not_found(method)),
            Err(_) if !introduced && method != "initialize" => Err(acp_not_initialized_error()),
            Ok(request) if !introduced && !matches!(request, ClientRequest::Initialize(_)) => {
                Err(acp_not_initialized_error())
            }
            Ok(request)
                if !self.logged_in
                    && !matches!(request, ClientRequest::Authenticate { .. } | ClientRequest::Logout) =>
            {
                Err(acp_login_needed_error())
            }
            request => request,
        }
    }

    /// What the capabilities do not name is not there.
    fn is_offered(&self, request: &ClientRequest) -> bool {
        let loads = self.profile.load_session == LoadSession::Supported;
        match request {
            ClientRequest::Load(..)
            | ClientRequest::Resume(..)
            | ClientRequest::Fork(..)
            | ClientRequest::List { .. } => loads,
            ClientRequest::Initialize(_)
            | ClientRequest::Authenticate { .. }
            | ClientRequest::Logout
            | ClientRequest::New(_)
            | ClientRequest::Close(_)
            | ClientRequest::Delete(_)
            | ClientRequest::Archive(_)
            | ClientRequest::Unarchive(_)
            | ClientRequest::SetTitle(..)
            | ClientRequest::Status(_)
            | ClientRequest::Cancel(_)
            | ClientRequest::Session(..)
            | ClientRequest::Extension { .. } => true,
        }
    }

    fn dispatch_request(&mut self, request: ClientRequest, responder: Responder, ids: &mut dyn IdGenerator) {
        match request {
            ClientRequest::Initialize(hello) => self.handle_initialize(hello, responder),
            ClientRequest::Authenticate { method } => self.handle_login(&method, responder),
            ClientRequest::Logout => self.handle_logout(responder),
            ClientRequest::New(params) => {
                let ticket = self.issue_ticket(PendingRequest::Made {
                    responder,
                    opened: OpenedSession::new(&params, &self.profile),
                });
                self.intents.push_back(Intent::NewSession { ticket, params });
            }
            ClientRequest::Load(session, params) => {
                let ticket =
                    self.issue_open_ticket(session, PendingRequest::Load { responder: Some(responder), session });
                self.intents.push_back(Intent::LoadSession { ticket, session, params });
            }
            ClientRequest::Resume(session, params) => {
                let opened = OpenedSession::for_existing(&params, &self.profile);
                let ticket = self.issue_open_ticket(session, PendingRequest::Resume { responder, session, opened });
                self.intents.push_back(Intent::ResumeSession { ticket, session, params });
            }
            ClientRequest::Fork(session, params) => self.fork_session(session, params, responder),
            ClientRequest::List { cwd, cursor, filter } => {
                let ticket = self.issue_ticket(PendingRequest::List(responder));
                self.intents.push_back(Intent::ListSessions { ticket, cwd, cursor, filter });
            }
            ClientRequest::Close(session) => {
                self.leave_session(session, responder, |ticket| Intent::CloseSession { ticket, session })
            }
            ClientRequest::Delete(session) => {
                self.leave_session(session, responder, |ticket| Intent::DeleteSession { ticket, session });
            }
            ClientRequest::Archive(session) => {
                self.leave_session(session, responder, |ticket| Intent::ArchiveSession { ticket, session });
            }
            ClientRequest::Unarchive(session) => {
                self.send_command(session, Command::Archive { archived: false }, responder, json!({}));
            }
            ClientRequest::SetTitle(session, title) => {
                let result = json!({ "title": title });
                self.send_command(session, Command::SetTitle { title }, responder, result);
            }
            ClientRequest::Status(session) => {
                let ticket = self.issue_ticket(PendingRequest::Status(responder));
                self.intents.push_back(Intent::SessionStatus { ticket, session });
            }
            ClientRequest::Cancel(session) => {
                self.cancel_run(session);
                self.peer.respond_result(responder, &json!({}));
            }
            ClientRequest::Session(session, request) => {
                self.run_in_session(session, QueuedRequest { responder, run: RunId::make(ids), request });
            }
            ClientRequest::Extension { method, params } => {
                let ticket = self.issue_ticket(PendingRequest::Extension(responder));
                self.intents.push_back(Intent::Extension { ticket, method, params });
            }
        }
    }

    fn handle_initialize(&mut self, hello: InitializeParams, responder: Responder) {
        let v2 = self.speech.dialect() == Dialect::V2;
        let ClientAbilities { notices, compaction, .. } = hello.abilities;
        self.client_name = hello.name;
        self.abilities =
            Some(ClientAbilities { v2, notices: notices || v2, compaction: compaction || v2, ..hello.abilities });
        if v2 {
            self.peer.respond_result(responder, &v2::hello(&self.profile));
            return;
        }
        if self.speech.dialect() == Dialect::Goosed {
            let ticket = self.issue_ticket(PendingRequest::Hello(responder));
            self.intents.push_back(Intent::FirstSession { ticket });
            return;
        }
        let mut response = serde_json::to_value(initialize::v1_initialize_response(&self.profile, hello.abilities))
            .unwrap_or_default();
        if hello.version.is_string() {
            response["protocolVersion"] = hello.version; // who says it as a text wants to hear the same text
        }
        self.peer.respond_result(responder, &response);
    }

    /// The transport has decided who comes in: a login only takes a logout back. Who calls the setup a login is in already.
    fn handle_login(&mut self, method: &str, responder: Responder) {
        let setup = self.profile.setup.is_some() && method == initialize::SETUP;
        if setup || self.profile.logins.iter().any(|login| login.id == method) {
            self.logged_in = true;
            self.peer.respond_result(responder, &json!({}));
        } else {
            self.peer
                .respond_error(responder, &Error::invalid_params(format!("no such authentication method: {method}")));
        }
    }

    fn handle_logout(&mut self, responder: Responder) {
        self.logged_in = false;
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.detach_session(session, &Err(acp_login_needed_error()));
            self.intents.push_back(Intent::Detach { session });
        }
        self.peer.out.set_origin(crate::jsonrpc::MessageOrigin::default());
        self.peer.respond_result(responder, &json!({}));
    }

    fn fork_session(&mut self, session: SessionId, params: SessionParams, responder: Responder) {
        let ticket =
            self.issue_ticket(PendingRequest::Made { responder, opened: OpenedSession::new(&params, &self.profile) });
        self.intents.push_back(Intent::ForkSession { ticket, session, params });
    }

    fn leave_session(&mut self, session: SessionId, responder: Responder, intent: impl FnOnce(IntentTicket) -> Intent) {
        let ticket = self.issue_ticket(PendingRequest::Leave { responder, session });
        self.intents.push_back(intent(ticket));
    }

    /// Commands a session and answers with this result once it is done.
    fn send_command(&mut self, session: SessionId, command: Command, responder: Responder, result: Value) {
        let ticket = Some(self.issue_ticket(PendingRequest::Command { responder, result }));
        self.intents.push_back(Intent::Command { session, command, ticket });
    }

    fn issue_open_ticket(&mut self, session: SessionId, waiting: PendingRequest) -> IntentTicket {
        self.opening.entry(session).or_default();
        self.issue_ticket(waiting)
    }

    /// Acts on a request if its session is open here, else opens it first.
    fn run_in_session(&mut self, session: SessionId, held: QueuedRequest) {
        if let Some(waiting) = self.opening.get_mut(&session) {
            if waiting.len() < MAX_QUEUED_REQUESTS {
                waiting.push(held);
            } else {
                let error = Error::new(Code::InvalidRequest, "too many requests wait for this session to open");
                self.peer.respond_error(held.responder, &error);
            }
        } else if self.sessions.contains_key(&session) {
            self.run_queued(session, held);
        } else {
            let ticket = self.issue_open_ticket(session, PendingRequest::Attach { session });
            self.intents.push_back(Intent::Attach { ticket, session });
            self.run_in_session(session, held);
        }
    }

    fn run_queued(&mut self, session: SessionId, held: QueuedRequest) {
        let QueuedRequest { responder, run, request } = held;
        match request {
            SessionRequest::Prompt { parts, meta, if_busy } => {
                let meta = self.mark_prompt_meta(meta, responder.id());
                self.prompts.insert(run, ActivePrompt::new(responder, session));
                if let Some(attachment) =
                    self.sessions.get_mut(&session).filter(|open| if_busy == IfBusy::Steer && open.is_running())
                {
                    attachment.expect_echo(parts.clone());
                }
                let origin = self.origin.clone();
                let command = Command::Prompt { run, origin, parts, if_busy, meta };
                let ticket = Some(self.issue_ticket(PendingRequest::Prompt(run)));
                self.intents.push_back(Intent::Command { session, command, ticket });
            }
            SessionRequest::Wait => self.wait_for_run(session, responder),
            SessionRequest::Steer { parts, idle } => self.steer_run(session, run, parts, idle, responder),
            SessionRequest::SetMode { mode } => {
                let patch = self.option_patch(session, "mode", &mode);
                self.configure_session(session, responder, patch, ConfigureReply::Nothing);
            }
            SessionRequest::SetOption { option, value } => {
                let is_own = self.speech.dialect() == Dialect::Aptove && option == aptove::STREAMING;
                let patch = match is_own {
                    true => self.set_streaming(session, &value),
                    false => self.option_patch(session, &option, &value),
                };
                self.configure_session(session, responder, patch, ConfigureReply::Options);
            }
        }
    }

    /// What a value for an option changes. Modes have further names in a dialect, where a mode of this name is not there.
    fn option_patch(&self, session: SessionId, option: &str, value: &str) -> Result<SettingsPatch, Error> {
        let is_aptove = self.speech.dialect() == Dialect::Aptove && option == "mode";
        self.settings_patch(session, |catalog, settings| {
            let known = catalog.roster.available_modes(settings).any(|way| is_same_roster_name(&way.name, value));
            match aptove::aptove_mode_alias(value).filter(|_| is_aptove && !known) {
                Some((mode, policy)) => {
                    let patch = config_options::config_option_patch(catalog, settings, option, mode)?;
                    Ok(SettingsPatch { policy, ..patch })
                }
                None => config_options::config_option_patch(catalog, settings, option, value),
            }
        })
    }

    /// How this client is told of the session: nothing of the session itself changes.
    fn set_streaming(&mut self, session: SessionId, value: &str) -> Result<SettingsPatch, Error> {
        let streams = match value {
            "enabled" | "true" => true,
            "disabled" | "false" => false,
            other => {
                let other = &other[..other.floor_char_boundary(64)];
                return Err(Error::invalid_params(format!(
                    "unknown streaming '{other}', available: enabled, disabled"
                )));
            }
        };
        self.speech.set_streaming(session, streams);
        Ok(SettingsPatch::default())
    }

    /// Answered as the prompt of the run under way is, after all its updates; at once if none is.
    fn wait_for_run(&mut self, session: SessionId, responder: Responder) {
        let view = self.sessions.get(&session).and_then(|attachment| attachment.view());
        let run = view.and_then(|view| view.run.as_ref()).map(|run| run.id);
        match run {
            Some(run) if self.prompts.contains_key(&run) => {
                let error = Error::new(Code::InvalidRequest, "this connection waits for the run already");
                self.peer.respond_error(responder, &error);
            }
            Some(run) => drop(self.prompts.insert(run, ActivePrompt::of_others(responder, session))),
            None => {
                let last = view.and_then(|view| view.ended.last()).map(|(_, outcome)| outcome);
                self.peer.respond_result(responder, &json!({ "stopReason": null, "lastOutcome": last }));
            }
        }
    }

    fn steer_run(&mut self, session: SessionId, run: RunId, parts: Vec<Part>, idle: WhenIdle, responder: Responder) {
        let attachment = self.sessions.get_mut(&session);
        let running = attachment.as_ref().and_then(|open| open.view()).is_some_and(|view| view.run.is_some());
        if !running && idle == WhenIdle::Decline {
            self.peer.respond_result(responder, &json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
            return;
        }
        if let Some(attachment) = attachment {
            attachment.expect_echo(parts.clone());
        }
        let command = Command::Prompt { run, origin: self.origin.clone(), parts, if_busy: IfBusy::Steer, meta: None };
        let ticket = Some(self.issue_ticket(PendingRequest::Steer(responder)));
        self.intents.push_back(Intent::Command { session, command, ticket });
    }

    /// What a change names. It names what is another than now, and *now* is not what this client was told last: changes
    /// that it made before may be stored and not told yet, or still be on their way. Whoever sets a mode and then the
    /// one of before would otherwise change nothing.
    fn settings_patch(
        &self,
        session: SessionId,
        read: impl Fn(&gander_domain::SessionCatalog, &gander_domain::Settings) -> Result<SettingsPatch, Error>,
    ) -> Result<SettingsPatch, Error> {
        let attachment = self.sessions.get(&session);
        let known = attachment.and_then(|attachment| Some((attachment.catalog(), attachment.accepted_settings()?)));
        let Some((catalog, mut settings)) = known else {
            return Err(crate::acp::error::acp_unknown_session_error(&session.to_string()));
        };
        let mut named = read(catalog, &settings);
        for pending in self.pending_changes(session) {
            settings.apply_patch(pending);
            // Each of them may yet be refused: what is another than with any of them is named.
            if let Ok(more) = read(catalog, &settings) {
                named = Ok(match named {
                    Ok(named) => {
                        SettingsPatch { agent: named.agent.or(more.agent), mode: named.mode.or(more.mode), ..named }
                    }
                    Err(_) => more,
                });
            }
        }
        named
    }

    /// Changes of a session's settings that were sent on and neither accepted nor refused yet, oldest first.
    fn pending_changes(&self, session: SessionId) -> impl Iterator<Item = &SettingsPatch> {
        let mut pending: Vec<(u64, &SettingsPatch)> = Vec::new();
        for (ticket, waiting) in &self.waiting {
            if let PendingRequest::Configure { session: of, patch, .. } = waiting
                && *of == session
            {
                pending.push((*ticket, patch));
            }
        }
        pending.sort_by_key(|(ticket, _)| *ticket);
        pending.into_iter().map(|(_, patch)| patch)
    }

    fn configure_session(
        &mut self,
        session: SessionId,
        responder: Responder,
        patch: Result<SettingsPatch, Error>,
        reply: ConfigureReply,
    ) {
        match patch {
            Ok(patch) => {
                let command = Command::Configure { patch: patch.clone() };
                let ticket = Some(self.issue_ticket(PendingRequest::Configure { responder, session, patch, reply }));
                self.intents.push_back(Intent::Command { session, command, ticket });
            }
            Err(error) => self.peer.respond_error(responder, &error),
        }
    }

    fn cancel_run(&mut self, session: SessionId) {
        self.drop_queued_prompts(session);
        let command = Command::Cancel { run: None, origin: self.origin.clone() };
        self.intents.push_back(Intent::Command { session, command, ticket: None });
    }
}
