//! The client's side of one agent's connection: what our own command line and tests drive an agent with.

mod events;
mod request;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::events::{AgentEvent, CallId, PermissionRequest, ShownUpdate};
pub use self::request::AgentRequest;
use super::schema::{
    ClientCapabilities, ClientSessionCapabilities, ContentBlock, Implementation, InitializeRequest, NoticeCapabilities,
    RequestPermissionRequest, SessionNotification, SessionUpdate, StopReason,
};
use crate::jsonrpc::{Code, Counters, Error, Incoming, Outbox, Params, Peer, RequestId, Responder};

/// What a call fails with when its agent is gone: the code that other clients use.
pub const AGENT_GONE: i64 = -32000;

/// The client's side of one agent's connection.
///
/// Each call returns a number; what came of it is told by [`poll_event`](Self::poll_event) under the same number.
/// Whatever an agent asks that this client did not offer is answered "method not found".
#[derive(Debug, Default)]
pub struct AgentClient {
    peer: Peer<PendingCall>,
    told: VecDeque<AgentEvent>,
    offers: ClientCapabilities,
    extensions: Extensions,
    updates: UpdateForm,
    calls: i64,
}

/// What becomes of methods of the agent's own, which begin with an underscore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extensions {
    #[default]
    Refused,
    /// Given to whoever owns this client.
    PassedOn,
}

/// How updates are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UpdateForm {
    /// As far as the schema's types hold them.
    #[default]
    Known,
    /// Also as they came, where the types may not hold all of it.
    Whole,
}

/// What we asked the agent.
#[derive(Debug)]
struct PendingCall {
    call: CallId,
    what: CallKind,
}

#[derive(Debug)]
enum CallKind {
    Initialize,
    New,
    Open(String),
    Prompt,
    Other,
}

impl AgentClient {
    /// Introduces this client. It offers nothing but to answer questions.
    pub fn initialize(&mut self, name: &str, version: &str) -> CallId {
        let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::new());
        self.initialize_with(Implementation::new(name, version), ClientCapabilities::new().session(session))
    }

    /// Introduces this client and says what it offers.
    pub fn initialize_with(&mut self, who: Implementation, offers: ClientCapabilities) -> CallId {
        self.offers = offers.clone();
        let params = InitializeRequest::new(1.into()).client_info(who).client_capabilities(offers);
        self.send_call("initialize", &params, CallKind::Initialize)
    }

    /// Wants to be told of methods of the agent's own, which begin with an underscore, too.
    pub fn accept_extensions(&mut self) {
        self.extensions = Extensions::PassedOn;
    }

    /// Wants updates whole that the types of the schema may not hold whole.
    pub fn keep_whole_updates(&mut self) {
        self.updates = UpdateForm::Whole;
    }

    /// Makes a session in this folder.
    pub fn new_session(&mut self, cwd: &str) -> CallId {
        self.send_call("session/new", &json!({ "cwd": cwd, "mcpServers": [] }), CallKind::New)
    }

    /// Opens a session and has its history told.
    pub fn load_session(&mut self, session: &str, cwd: &str) -> CallId {
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.send_call("session/load", &params, CallKind::Open(session.to_owned()))
    }

    /// Opens a session without its history.
    pub fn resume_session(&mut self, session: &str, cwd: &str) -> CallId {
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.send_call("session/resume", &params, CallKind::Open(session.to_owned()))
    }

    /// Says something and begins a turn.
    pub fn prompt(&mut self, session: &str, content: &[ContentBlock]) -> CallId {
        self.send_call("session/prompt", &json!({ "sessionId": session, "prompt": content }), CallKind::Prompt)
    }

    /// Calls any other method.
    pub fn call(&mut self, method: &str, params: &Value) -> CallId {
        self.send_call(method, params, CallKind::Other)
    }

    /// Says something that has no answer.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.peer.out.push_notification(method, params);
    }

    /// Takes a call back: the agent is told, a late answer is dropped. False if it was answered before.
    pub fn cancel_call(&mut self, call: CallId) -> bool {
        self.peer.cancel_request(&RequestId::from(call.0)).is_some()
    }

    /// Stops the turn of a session. Its prompt is still answered.
    pub fn cancel(&mut self, session: &str) {
        self.peer.out.push_notification("session/cancel", &json!({ "sessionId": session }));
    }

    /// Chooses an option.
    pub fn select_option(&mut self, permission: PermissionRequest, option: &str) {
        self.peer.respond_result(permission.0, &json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    /// Does not choose.
    pub fn decline(&mut self, permission: PermissionRequest) {
        self.peer.respond_result(permission.0, &json!({ "outcome": { "outcome": "cancelled" } }));
    }

    /// Answers a request.
    pub fn respond(&mut self, responder: Responder, result: &impl Serialize) {
        self.peer.respond_result(responder, result);
    }

    /// Answers a request with an error.
    pub fn respond_error(&mut self, responder: Responder, error: &Error) {
        self.peer.respond_error(responder, error);
    }

    /// Takes in one whole message of the agent. What is no message is skipped: agents do print banners.
    pub fn handle_message(&mut self, message: &[u8]) {
        match self.peer.handle_message(message) {
            None => {}
            Some(Incoming::Request { method, params, responder }) => self.handle_request(&method, params, responder),
            Some(Incoming::Notification { method, params }) => self.handle_notification(&method, params),
            Some(Incoming::Cancelled(request)) => self.told.push_back(AgentEvent::Withdrawn { request }),
            Some(Incoming::Answer { context, result }) => self.told.push_back(client_call_event(context, result)),
            Some(Incoming::Malformed(_)) => self.peer.counters.malformed += 1,
        }
    }

    /// What the agent told next.
    pub fn poll_event(&mut self) -> Option<AgentEvent> {
        self.told.pop_front()
    }

    /// What waits to be written to the agent. Clear it once it is written.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.peer.out
    }

    /// The agent is gone: every call that waits has failed.
    pub fn handle_disconnect(&mut self) {
        let error = Error { code: AGENT_GONE, message: "the agent is gone".to_owned(), data: None };
        let failed =
            self.peer.take_pending().map(|asked| AgentEvent::Failed { call: asked.call, error: error.clone() });
        self.told.extend(failed);
    }

    /// What was dropped without an answer.
    pub fn counters(&self) -> Counters {
        self.peer.counters
    }

    fn send_call(&mut self, method: &str, params: &impl Serialize, what: CallKind) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.peer.send_request(RequestId::from(call.0), method, params, PendingCall { call, what });
        call
    }

    fn handle_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        if method == "session/request_permission" {
            return match params.parse::<RequestPermissionRequest>() {
                Ok(request) => self.told.push_back(AgentEvent::Asked {
                    permission: PermissionRequest(responder),
                    request: Box::new(request),
                }),
                Err(error) => self.peer.respond_error(responder, &error),
            };
        }
        let known = self.extensions == Extensions::PassedOn || !method.starts_with('_');
        let request = known.then(|| AgentRequest::from_params(&self.offers, method, params));
        match request.unwrap_or_else(|| Err(Error::method_not_found(method))) {
            Ok(request) => self.told.push_back(AgentEvent::Requested { responder, request: Box::new(request) }),
            Err(error) => self.peer.respond_error(responder, &error),
        }
    }

    fn handle_notification(&mut self, method: &str, params: Params<'_>) {
        let told = match method {
            "session/update" => self.read_update(params),
            method => params.value().map(|params| AgentEvent::Notified { method: method.to_owned(), params }),
        };
        match told {
            Ok(told) => self.told.push_back(told),
            Err(_) => self.peer.counters.ignored_notifications += 1,
        }
    }

    fn read_update(&self, params: Params<'_>) -> Result<AgentEvent, Error> {
        let known = params.parse::<SessionNotification>();
        match (self.updates, known) {
            (UpdateForm::Known, known) => known.map(|told| AgentEvent::Updated(Box::new(told))),
            (UpdateForm::Whole, Ok(told)) if is_plain_text_update(&told) => Ok(AgentEvent::Updated(Box::new(told))),
            (UpdateForm::Whole, known) => {
                let (params, known) = (params.value()?, known.ok().map(Box::new));
                Ok(AgentEvent::UpdatedWhole { params, known })
            }
        }
    }
}

/// True for the text of a message alone: most updates, so nothing else may cost them anything.
fn is_plain_text_update(told: &SessionNotification) -> bool {
    let (SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk)) = &told.update else {
        return false;
    };
    let ContentBlock::Text(text) = &chunk.content else { return false };
    told.meta.is_none() && chunk.meta.is_none() && text.meta.is_none() && text.annotations.is_none()
}

fn client_call_event(asked: PendingCall, result: Result<&RawValue, Error>) -> AgentEvent {
    let PendingCall { call, what } = asked;
    let told = result.and_then(|result| match what {
        CallKind::Initialize => {
            read_agent_result(result).map(|agent| AgentEvent::Initialized { call, agent: Box::new(agent) })
        }
        CallKind::New => {
            read_agent_result(result).map(|NewSession { session_id }| AgentEvent::Opened { call, session: session_id })
        }
        CallKind::Open(session) => Ok(AgentEvent::Opened { call, session }),
        CallKind::Prompt => {
            read_agent_result(result).map(|PromptEnd { stop_reason }| AgentEvent::Ended { call, stop: stop_reason })
        }
        CallKind::Other => read_agent_result(result).map(|result| AgentEvent::Answered { call, result }),
    });
    told.unwrap_or_else(|error| AgentEvent::Failed { call, error })
}

fn read_agent_result<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, Error> {
    serde_json::from_str(result.get())
        .map_err(|error| Error::new(Code::Internal, format!("the agent's answer cannot be read: {error}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptEnd {
    stop_reason: StopReason,
}
