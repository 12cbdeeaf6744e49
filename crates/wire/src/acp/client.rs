//! The client's side of one agent's connection: what our own command line and tests drive an agent with.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::schema::{
    ContentBlock, ContentChunk, Cost, InitializeResponse, PermissionOption, Plan, RequestPermissionRequest,
    SessionNotification, SessionUpdate, StopReason, ToolCall, ToolCallUpdate,
};
use crate::jsonrpc::{Code, Counters, Error, Incoming, Outbox, Params, Peer, RequestId, Responder};

/// What a call fails with when its agent is gone: the code that other clients use.
const GONE: i64 = -32000;

/// The client's side of one agent's connection.
///
/// Each call returns a number; what came of it is told by [`poll`](Self::poll) under the same number.
/// Whatever an agent asks that this client did not offer is answered "method not found".
#[derive(Debug, Default)]
pub struct Client {
    peer: Peer<Asked>,
    told: VecDeque<Told>,
    calls: i64,
}

/// Which call an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(i64);

/// A question of the agent that waits for an answer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an agent that is not answered waits"]
pub struct Permission(Responder);

/// What an agent tells.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// Who it is and what it can do.
    Initialized { call: CallId, agent: Box<InitializeResponse> },
    /// A session is open.
    Opened { call: CallId, session: String },
    /// A turn came to its end.
    Ended { call: CallId, stop: StopReason },
    /// Any other call was carried out.
    Answered { call: CallId, result: Value },
    /// A call was refused, or the agent is gone.
    Failed { call: CallId, error: Error },
    /// Something happened in a session.
    Heard { session: String, heard: Heard },
    /// It wants to know whether it may.
    Asked { permission: Permission, session: String, tool: Box<ToolCallUpdate>, options: Vec<PermissionOption> },
    /// It does not want to know any more: somebody else answered. The permission is to be declined.
    Withdrawn { permission: RequestId },
}

/// What happened in a session.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// A person speaks, as told by a replay or at another client.
    User(String),
    /// The agent speaks.
    Agent(String),
    /// The agent thinks.
    Thought(String),
    /// Content that is no text: who speaks is in the update.
    Content(Box<SessionUpdate>),
    /// A tool is wanted.
    Tool(Box<ToolCall>),
    /// A tool goes on.
    ToolChanged(Box<ToolCallUpdate>),
    /// The plan is now this.
    Plan(Plan),
    /// The title is now this.
    Title(Option<String>),
    /// The mode is now this.
    Mode(String),
    /// So much of the window is used.
    Usage { used: u64, size: u64, cost: Option<Cost> },
    /// Anything else.
    Other(Box<SessionUpdate>),
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
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": name, "version": version },
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false,
                                    "session": { "notices": {} } },
        });
        self.send("initialize", &params, What::Initialize)
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

    /// Takes in one whole message of the agent. What is no message is skipped: agents do print banners.
    pub fn receive(&mut self, message: &[u8]) {
        match self.peer.receive(message) {
            None => {}
            Some(Incoming::Request { method, params, responder }) => self.request(&method, params, responder),
            Some(Incoming::Notification { method, params }) => self.notification(&method, params),
            Some(Incoming::Cancelled(permission)) => self.told.push_back(Told::Withdrawn { permission }),
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

    fn send(&mut self, method: &str, params: &Value, what: What) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.peer.request(RequestId::from(call.0), method, params, Asked { call, what });
        call
    }

    fn request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        let asked = match method {
            "session/request_permission" => params.parse::<RequestPermissionRequest>(),
            _ => Err(Error::method_not_found(method)),
        };
        match asked {
            Ok(asked) => self.told.push_back(Told::Asked {
                permission: Permission(responder),
                session: asked.session_id.0.to_string(),
                tool: Box::new(asked.tool_call),
                options: asked.options,
            }),
            Err(error) => self.peer.fail(responder, &error),
        }
    }

    fn notification(&mut self, method: &str, params: Params<'_>) {
        let update = (method == "session/update").then(|| params.parse::<SessionNotification>().ok()).flatten();
        match update {
            Some(update) => self
                .told
                .push_back(Told::Heard { session: update.session_id.0.to_string(), heard: heard(update.update) }),
            None => self.peer.counters.ignored_notifications += 1,
        }
    }
}

impl Permission {
    /// Its id, as [`Told::Withdrawn`] names it.
    pub fn id(&self) -> &RequestId {
        self.0.id()
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

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn heard(update: SessionUpdate) -> Heard {
    match update {
        SessionUpdate::UserMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
            Heard::User(text.text)
        }
        SessionUpdate::AgentMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
            Heard::Agent(text.text)
        }
        SessionUpdate::AgentThoughtChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
            Heard::Thought(text.text)
        }
        SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::AgentMessageChunk(_)
        | SessionUpdate::AgentThoughtChunk(_) => Heard::Content(Box::new(update)),
        SessionUpdate::ToolCall(call) => Heard::Tool(Box::new(call)),
        SessionUpdate::ToolCallUpdate(change) => Heard::ToolChanged(Box::new(change)),
        SessionUpdate::Plan(plan) => Heard::Plan(plan),
        SessionUpdate::SessionInfoUpdate(info) => Heard::Title(info.title.take()),
        SessionUpdate::CurrentModeUpdate(mode) => Heard::Mode(mode.current_mode_id.0.to_string()),
        SessionUpdate::UsageUpdate(usage) => Heard::Usage { used: usage.used, size: usage.size, cost: usage.cost },
        other => Heard::Other(Box::new(other)),
    }
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
