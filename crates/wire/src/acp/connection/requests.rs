//! What a client asks, and which intent that makes.

use gander_domain::{Command, Ids, IfBusy, RunId, SessionId, SettingsPatch};
use serde_json::json;

use super::results::{ConfigureReply, Waiting};
use super::{Connection, Held, Prompt};
use crate::acp::error::{cancelled, not_initialized};
use crate::acp::input::{self, Hello, Request, SessionRequest};
use crate::acp::options;
use crate::acp::schema::{
    AgentCapabilities, Implementation, InitializeResponse, McpCapabilities, PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use crate::acp::types::Intent;
use crate::jsonrpc::{Code, Error, Params, RequestId, Responder};
use agent_client_protocol_schema::ProtocolVersion;

/// How many requests may wait for one session to open.
const MAX_HELD: usize = 64;

impl Connection {
    pub(super) fn request(&mut self, method: &str, params: Params<'_>, responder: Responder, ids: &mut dyn Ids) {
        let request = match input::request(method, params, &self.profile) {
            Err(error) if error.is(Code::MethodNotFound) => Err(error),
            Ok(Request::Initialize(_)) if self.abilities.is_some() => {
                Err(Error::new(Code::InvalidRequest, "already initialized"))
            }
            Err(_) if self.abilities.is_none() && method != "initialize" => Err(not_initialized()),
            Ok(request) if self.abilities.is_none() && !matches!(request, Request::Initialize(_)) => {
                Err(not_initialized())
            }
            request => request,
        };
        match request {
            Ok(request) => self.handle(request, responder, ids),
            Err(error) => self.peer.fail(responder, &error),
        }
    }

    pub(super) fn notification(&mut self, method: &str, params: Params<'_>) {
        let session = (method == "session/cancel").then(|| input::cancel(params).ok()).flatten();
        match session.filter(|_| self.abilities.is_some()) {
            Some(session) => self.cancel(session),
            None => self.peer.counters.ignored_notifications += 1,
        }
    }

    /// The caller takes a request back: a prompt's run is cancelled, a load goes on in silence, what waits is dropped,
    /// and everything else is about to be answered anyway.
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
        let replaying =
            loading.or_else(|| self.sessions.values_mut().find_map(|attachment| attachment.stop_replaying(id)));
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

    fn handle(&mut self, request: Request, responder: Responder, ids: &mut dyn Ids) {
        match request {
            Request::Initialize(hello) => self.initialize(&hello, responder),
            Request::Authenticate { method } => {
                let error = Error::invalid_params(format!("no such authentication method: {method}"));
                self.peer.fail(responder, &error);
            }
            Request::New(params) => {
                let ticket = self.ticket(Waiting::New(responder));
                self.intents.push_back(Intent::NewSession { ticket, params });
            }
            Request::Load(session, params) => {
                let ticket = self.opens(session, Waiting::Load { responder: Some(responder), session });
                self.intents.push_back(Intent::LoadSession { ticket, session, params });
            }
            Request::Resume(session, params) => {
                let ticket = self.opens(session, Waiting::Resume { responder, session });
                self.intents.push_back(Intent::ResumeSession { ticket, session, params });
            }
            Request::List { cwd, cursor } => {
                let ticket = self.ticket(Waiting::List(responder));
                self.intents.push_back(Intent::ListSessions { ticket, cwd, cursor });
            }
            Request::Close(session) => {
                let ticket = self.ticket(Waiting::Leave { responder, session });
                self.intents.push_back(Intent::CloseSession { ticket, session });
            }
            Request::Delete(session) => {
                let ticket = self.ticket(Waiting::Leave { responder, session });
                self.intents.push_back(Intent::DeleteSession { ticket, session });
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

    fn initialize(&mut self, hello: &Hello, responder: Responder) {
        self.abilities = Some(hello.abilities);
        let prompt =
            PromptCapabilities::new().image(self.profile.image).audio(self.profile.audio).embedded_context(true);
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(prompt)
            .mcp_capabilities(McpCapabilities::new().http(self.profile.mcp_http).sse(self.profile.mcp_sse))
            .session_capabilities(sessions);
        let info = Implementation::new(self.profile.name.clone(), self.profile.version.clone());
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info.title(self.profile.title.clone()));
        self.peer.respond(responder, &response);
    }

    fn opens(&mut self, session: SessionId, waiting: Waiting) -> crate::acp::Ticket {
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
                self.prompts.insert(run, Prompt { responder, session, echoed: false });
                let origin = self.origin.clone();
                let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta };
                let ticket = Some(self.ticket(Waiting::Prompt(run)));
                self.intents.push_back(Intent::Command { session, command, ticket });
            }
            SessionRequest::SetMode { mode } => {
                let patch = self.patch(session, |catalog, settings| options::mode_patch(catalog, settings, &mode));
                self.configure(session, responder, patch, ConfigureReply::Nothing);
            }
            SessionRequest::SetOption { option, value } => {
                let patch = self.patch(session, |catalog, settings| options::patch(catalog, settings, &option, &value));
                self.configure(session, responder, patch, ConfigureReply::Options);
            }
        }
    }

    fn patch(
        &self,
        session: SessionId,
        read: impl FnOnce(&crate::acp::Catalog, &gander_domain::Settings) -> Result<SettingsPatch, Error>,
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
