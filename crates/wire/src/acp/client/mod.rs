//! The client's side of one agent's connection: what our own command line and tests drive an agent with.

mod events;
mod request;
mod turn;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::events::{CallId, Heard, Permission, Told};
pub use self::request::Request;
pub use self::turn::Turn;
use super::schema::{
    ClientCapabilities, ClientSessionCapabilities, ContentBlock, Implementation, InitializeRequest, NoticeCapabilities,
    RequestPermissionRequest, SessionNotification, StopReason,
};
use crate::jsonrpc::{Code, Counters, Error, Incoming, Outbox, Params, Peer, RequestId, Responder};

/// What a call fails with when its agent is gone: the code that other clients use.
pub const GONE: i64 = -32000;

/// The client's side of one agent's connection.
///
/// Each call returns a number; what came of it is told by [`poll`](Self::poll) under the same number.
/// Whatever an agent asks that this client did not offer is answered "method not found".
#[derive(Debug, Default)]
pub struct Client {
    peer: Peer<Asked>,
    told: VecDeque<Told>,
    offers: ClientCapabilities,
    extensions: Extensions,
    calls: i64,
}

/// What becomes of methods of the agent's own, which begin with an underscore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extensions {
    #[default]
    Refused,
    Told,
}

/// What we asked the agent.
#[derive(Debug)]
struct Asked {
    call: CallId,
    what: What,
}

#[derive(Debug)]
enum What {
    Initialize,
    New,
    Open(String),
    Prompt,
    Other,
}

impl Client {
    /// Introduces this client. It offers nothing but to answer questions.
    pub fn initialize(&mut self, name: &str, version: &str) -> CallId {
        let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::new());
        self.introduce(Implementation::new(name, version), ClientCapabilities::new().session(session))
    }

    /// Introduces this client and says what it offers.
    pub fn introduce(&mut self, who: Implementation, offers: ClientCapabilities) -> CallId {
        self.offers = offers.clone();
        let params = InitializeRequest::new(1.into()).client_info(who).client_capabilities(offers);
        self.send("initialize", &params, What::Initialize)
    }

    /// Wants to be told of methods of the agent's own, which begin with an underscore, too.
    pub fn accept_extensions(&mut self) {
        self.extensions = Extensions::Told;
    }

    /// Makes a session in this folder.
    pub fn new_session(&mut self, cwd: &str) -> CallId {
        self.send("session/new", &json!({ "cwd": cwd, "mcpServers": [] }), What::New)
    }

    /// Opens a session and has its history told.
    pub fn load_session(&mut self, session: &str, cwd: &str) -> CallId {
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.send("session/load", &params, What::Open(session.to_owned()))
    }

    /// Opens a session without its history.
    pub fn resume_session(&mut self, session: &str, cwd: &str) -> CallId {
        let params = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
        self.send("session/resume", &params, What::Open(session.to_owned()))
    }

    /// Says something and begins a turn.
    pub fn prompt(&mut self, session: &str, content: &[ContentBlock]) -> CallId {
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": content }), What::Prompt)
    }

    /// Calls any other method.
    pub fn call(&mut self, method: &str, params: &Value) -> CallId {
        self.send(method, params, What::Other)
    }

    /// Says something that has no answer.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.peer.out.notification(method, params);
    }

    /// Takes a call back: the agent is told, a late answer is dropped. False if it was answered before.
    pub fn withdraw(&mut self, call: CallId) -> bool {
        self.peer.withdraw(&RequestId::from(call.0)).is_some()
    }

    /// Stops the turn of a session. Its prompt is still answered.
    pub fn cancel(&mut self, session: &str) {
        self.peer.out.notification("session/cancel", &json!({ "sessionId": session }));
    }

    /// Chooses an option.
    pub fn choose(&mut self, permission: Permission, option: &str) {
        self.peer.respond(permission.0, &json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    /// Does not choose.
    pub fn decline(&mut self, permission: Permission) {
        self.peer.respond(permission.0, &json!({ "outcome": { "outcome": "cancelled" } }));
    }

    /// Answers a request.
    pub fn respond(&mut self, responder: Responder, result: &impl Serialize) {
        self.peer.respond(responder, result);
    }

    /// Answers a request with an error.
    pub fn refuse(&mut self, responder: Responder, error: &Error) {
        self.peer.fail(responder, error);
    }

    /// Takes in one whole message of the agent. What is no message is skipped: agents do print banners.
    pub fn receive(&mut self, message: &[u8]) {
        match self.peer.receive(message) {
            None => {}
            Some(Incoming::Request { method, params, responder }) => self.request(&method, params, responder),
            Some(Incoming::Notification { method, params }) => self.notification(&method, params),
            Some(Incoming::Cancelled(request)) => self.told.push_back(Told::Withdrawn { request }),
            Some(Incoming::Answer { context, result }) => self.told.push_back(answer(context, result)),
            Some(Incoming::Malformed(_)) => self.peer.counters.malformed += 1,
        }
    }

    /// What the agent told next.
    pub fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// What waits to be written to the agent. Clear it once it is written.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.peer.out
    }

    /// The agent is gone: every call that waits has failed.
    pub fn disconnected(&mut self) {
        let error = Error { code: GONE, message: "the agent is gone".to_owned(), data: None };
        let failed = self.peer.abandon().map(|asked| Told::Failed { call: asked.call, error: error.clone() });
        self.told.extend(failed);
    }

    /// What was dropped without an answer.
    pub fn counters(&self) -> Counters {
        self.peer.counters
    }

    fn send(&mut self, method: &str, params: &impl Serialize, what: What) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.peer.request(RequestId::from(call.0), method, params, Asked { call, what });
        call
    }

    fn request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        if method == "session/request_permission" {
            return match params.parse::<RequestPermissionRequest>() {
                Ok(request) => {
                    self.told.push_back(Told::Asked { permission: Permission(responder), request: Box::new(request) })
                }
                Err(error) => self.peer.fail(responder, &error),
            };
        }
        let known = self.extensions == Extensions::Told || !method.starts_with('_');
        let request = known.then(|| Request::read(&self.offers, method, params));
        match request.unwrap_or_else(|| Err(Error::method_not_found(method))) {
            Ok(request) => self.told.push_back(Told::Requested { responder, request: Box::new(request) }),
            Err(error) => self.peer.fail(responder, &error),
        }
    }

    fn notification(&mut self, method: &str, params: Params<'_>) {
        let told = match method {
            "session/update" => params.parse::<SessionNotification>().map(|update| Told::Updated(Box::new(update))),
            method => params.value().map(|params| Told::Notified { method: method.to_owned(), params }),
        };
        match told {
            Ok(told) => self.told.push_back(told),
            Err(_) => self.peer.counters.ignored_notifications += 1,
        }
    }
}

fn answer(asked: Asked, result: Result<&RawValue, Error>) -> Told {
    let Asked { call, what } = asked;
    let told = result.and_then(|result| match what {
        What::Initialize => read(result).map(|agent| Told::Initialized { call, agent: Box::new(agent) }),
        What::New => read(result).map(|NewSession { session_id }| Told::Opened { call, session: session_id }),
        What::Open(session) => Ok(Told::Opened { call, session }),
        What::Prompt => read(result).map(|PromptEnd { stop_reason }| Told::Ended { call, stop: stop_reason }),
        What::Other => read(result).map(|result| Told::Answered { call, result }),
    });
    told.unwrap_or_else(|error| Told::Failed { call, error })
}

fn read<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, Error> {
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
