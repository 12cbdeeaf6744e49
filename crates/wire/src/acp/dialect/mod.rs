//! Dialects: clients that speak an older or a private form of the protocol.
//!
//! What comes in is put into the words of version 1 before it is read, whatever the dialect: that cannot hurt a standard
//! client. What goes out is written in version 1 first and put into the client's own words last, message by message, so
//! that nothing of a dialect can get into a standard answer. Which words those are is settled at `initialize`.

mod agentkit;
pub(super) mod aptove;
mod goosed;
mod inbound;
mod key_case;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use gander_domain::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::UNKNOWN_COMMAND;
use super::v2;
use crate::jsonrpc::{Error, MessageOrigin};
pub(super) use goosed::goosed_initialize_result as goosed_hello;

/// In which words a client is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Dialect {
    /// Version 1 as its schema says.
    #[default]
    Standard,
    /// Version 2 of the protocol, a draft.
    V2,
    /// The legacy dialect of goose's unified server: bare method names, snake_case, a session made by `initialize`.
    Goosed,
    /// Mobile clients of Aptove: `update.type` in camelCase, `config`, stop reason `error`.
    Aptove,
    /// The Go acp package: versions as text, `session: {id, metadata}`, `messageChunk`, `endTurn`.
    Agentkit,
}

/// How one client speaks, and how it is spoken to.
#[derive(Debug, Default)]
pub(super) struct DialectState {
    dialect: Dialect,
    /// Whether version 2 may be spoken.
    v2: bool,
    settled: DialectSource,
    /// The session that a message without one is about (legacy goose dialect).
    current: Option<SessionId>,
    /// What clients said about their sessions and want back (Go acp package).
    metadata: HashMap<SessionId, Value>,
    tools: agentkit::OpenToolCalls,
    /// Sessions whose messages come whole (Aptove).
    whole: HashSet<SessionId>,
}

/// Since when the dialect stands fast.
#[derive(Debug, Default, PartialEq, Eq)]
enum DialectSource {
    /// Nobody has said anything.
    #[default]
    Not,
    /// By `initialize`; a bare method name as the very next request still tells a client of the legacy goose dialect.
    Introduced,
    /// For good.
    Fast,
}

impl DialectState {
    /// Speech with nobody yet; version 2 only if the switch is on.
    pub(super) fn new(v2: bool) -> Self {
        Self { v2, ..Self::default() }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Speaks this dialect, whatever the client says.
    pub(super) fn force_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.settled = DialectSource::Fast;
    }

    /// True if this session's messages come whole.
    pub(super) fn sends_whole_messages(&self, session: SessionId) -> bool {
        self.whole.contains(&session)
    }

    /// From now on this session's text comes as it is written, or each message whole.
    pub(super) fn set_streaming(&mut self, session: SessionId, streams: bool) {
        if streams {
            self.whole.remove(&session);
        } else {
            self.whole.insert(session);
        }
    }

    /// The session that messages without one are about.
    pub(super) fn current_session(&self) -> Option<SessionId> {
        self.current
    }

    /// From now on messages without a session are about this one.
    pub(super) fn set_current_session(&mut self, session: SessionId) {
        self.current = Some(session);
    }

    /// Keeps what the client said about a session that it made.
    pub(super) fn remember_session(&mut self, session: SessionId, kept: Option<&Value>) {
        let metadata = kept.and_then(|kept| kept.get("acp")?.get("metadata"));
        if let Some(metadata) = metadata.filter(|_| self.dialect == Dialect::Agentkit) {
            self.metadata.insert(session, metadata.clone());
        }
    }

    /// A request or notification in the words of version 1.
    pub(super) fn normalize_request<'m>(&mut self, method: &'m str, params: Value) -> (&'m str, Value) {
        self.detect(method, &params);
        if self.dialect == Dialect::V2 {
            return v2::v1_request_from_v2(method, params);
        }
        let (method, mut params) = inbound::normalize_inbound_request(method, params);
        if self.dialect == Dialect::Goosed && inbound::names_session_in_params(method) && dialect_lacks_session(&params)
        {
            params["sessionId"] = self.current.map_or(Value::Null, |session| Value::String(session.to_string()));
        }
        (method, params)
    }

    /// What only version 2 refuses; `initialize` is refused before it is known which version is spoken.
    pub(super) fn v2_refusal(&self, method: &str, params: &Value) -> Option<Error> {
        let later = self.dialect == Dialect::V2 || (self.v2 && self.settled == DialectSource::Not);
        later.then(|| v2::v2_refusal(method, params)).flatten()
    }

    /// A message in the client's own words; `None` if it has none for it. Standard messages stay as they are.
    pub(super) fn translate_message(&mut self, origin: MessageOrigin, message: &[u8]) -> Option<Vec<u8>> {
        let mut message: Value = serde_json::from_slice(message).ok()?;
        let translated = match self.dialect {
            Dialect::Standard => Some(()),
            Dialect::V2 => v2::translate_to_v2(&mut message),
            Dialect::Goosed => goosed::translate_to_goosed(&mut message, origin.session),
            Dialect::Aptove => {
                let streams = origin.session.is_none_or(|session| !self.whole.contains(&session));
                aptove::translate_to_aptove(&mut message, streams)
            }
            Dialect::Agentkit => {
                let metadata = origin.session.and_then(|session| self.metadata.get(&session));
                agentkit::translate_to_agentkit(&mut message, metadata, &mut self.tools)
            }
        };
        translated.and_then(|()| serde_json::to_vec(&message).ok())
    }

    fn detect(&mut self, method: &str, params: &Value) {
        match self.settled {
            DialectSource::Not if method == "initialize" => {
                self.dialect =
                    if self.v2 && v2::speaks_v2(params) { Dialect::V2 } else { inbound::detect_dialect(params) };
                self.settled = DialectSource::Introduced;
            }
            DialectSource::Introduced => {
                if self.dialect == Dialect::Standard && inbound::is_legacy_method(method) {
                    self.dialect = Dialect::Goosed;
                }
                self.settled = DialectSource::Fast;
            }
            DialectSource::Not | DialectSource::Fast => {}
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::V2 => "v2",
            Self::Goosed => "goosed",
            Self::Aptove => "aptove",
            Self::Agentkit => "agentkit",
        })
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let all = [Self::Standard, Self::Goosed, Self::Aptove, Self::Agentkit];
        let found = all.into_iter().find(|dialect| dialect.to_string() == name);
        found.ok_or_else(|| format!("no such dialect, one of standard, goosed, aptove, agentkit: {name}"))
    }
}

impl TryFrom<String> for Dialect {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<Dialect> for String {
    fn from(dialect: Dialect) -> Self {
        dialect.to_string()
    }
}

/// The update of a `session/update`.
fn dialect_session_update(message: &mut Value) -> Option<&mut Map<String, Value>> {
    if message["method"] != "session/update" {
        return None;
    }
    message.get_mut("params")?.get_mut("update")?.as_object_mut()
}

/// The result of an answer.
fn dialect_result_object(message: &mut Value) -> Option<&mut Map<String, Value>> {
    message.get_mut("result")?.as_object_mut()
}

/// Where a run that failed has a stop reason of its own, that is the answer to its prompt, and no error.
fn dialect_stop_of_failed_run(message: &mut Value) {
    if message["error"]["data"]["outcome"] == "failed" {
        dialect_stop_of_error(message);
    }
}

/// The same for a command that nobody knows.
fn dialect_stop_of_unknown_command(message: &mut Value) {
    if message["error"]["data"]["reason"] == UNKNOWN_COMMAND {
        dialect_stop_of_error(message);
    }
}

fn dialect_stop_of_error(message: &mut Value) {
    if let Some(envelope) = message.as_object_mut() {
        let error = envelope.remove("error").unwrap_or_default();
        envelope.insert("result".to_owned(), serde_json::json!({ "stopReason": "error", "_meta": { "error": error } }));
    }
}

/// The text of a content block.
fn dialect_block_text(block: &Value) -> Option<&str> {
    block.get("text").or_else(|| block.get("resource")?.get("text"))?.as_str()
}

/// True if a session can be added to these parameters: what is no object is refused later, in words.
fn dialect_lacks_session(params: &Value) -> bool {
    (params.is_object() || params.is_null()) && params.get("sessionId").is_none()
}
