//! Version 2 of the protocol, a draft, behind a switch ([`AgentProfile::v2`](super::AgentProfile)).
//!
//! The session owns its updates: a prompt is acknowledged at once, states are told, whole messages are authoritative.
//! [`updates`] makes those of an entry; everything else is written as in version 1 and put into the words of version 2 here.

mod initialize;
mod translate;
mod updates;

pub(super) use initialize::v2_initialize_response as hello;
pub(super) use translate::translate_to_v2;
pub(super) use updates::{v2_message_updates, v2_run_end_update, v2_state_update};

use serde_json::{Map, Value, json};

use crate::jsonrpc::{Code, Error};

/// A request in the words of version 1.
pub(super) fn v1_request_from_v2(method: &str, mut params: Value) -> (&str, Value) {
    let method = match method {
        "auth/login" => "authenticate",
        "auth/logout" => "logout",
        "session/resume" if params["replayFrom"]["type"] == "start" => "session/load",
        other => other,
    };
    if method == "initialize"
        && let Some(members) = params.as_object_mut()
    {
        let capabilities = members.remove("capabilities").unwrap_or(Value::Object(Map::new()));
        members.insert("clientCapabilities".to_owned(), capabilities);
    }
    (method, params)
}

/// What is refused before it is read: no call and no terminal offers to be cancelled alone, and there must be a version
/// that both sides speak.
pub(super) fn v2_refusal(method: &str, params: &Value) -> Option<Error> {
    match method {
        "tool_call/cancel" => Some(Error::invalid_params("tool call cannot be cancelled without its turn")),
        "terminal/cancel" => Some(Error::invalid_params("no terminal of the agent's own has this id")),
        "initialize" if params["protocolVersion"] == 0 => {
            let versions = json!({ "requested": 0, "supported": [1, 2] });
            Some(Error::new(Code::UnsupportedVersion, "unsupported protocol version: 0").with_data(versions))
        }
        _ => None,
    }
}

/// True for a client that introduces itself in version 2 or later.
pub(super) fn speaks_v2(params: &Value) -> bool {
    params["protocolVersion"].as_u64().is_some_and(|version| version >= 2) && params["info"].is_object()
}
