//! What the chat wants done: calls of the server and answers to it.

use gander_wire::acp::client::PermissionRequest;
use gander_wire::jsonrpc::Responder;
use serde_json::Value;

use super::picker::PickerItem;
use crate::commands::Exit;

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Call a method; its answer comes back under the same name.
    Call { call: Call, method: &'static str, params: Value },
    /// Stop the turn of a session.
    Cancel { session: String },
    /// Answer a question or a form.
    Respond { responder: Responder, response: Value },
    /// Leave a question to others.
    Decline { permission: PermissionRequest },
    /// The chat is over.
    Leave { exit: Exit },
}

/// A call that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    New,
    Load,
    Show,
    Prompt,
    /// A message for the running turn.
    Steer(String),
    /// The end of a run, whoever began it.
    Wait,
    SetOption {
        id: String,
    },
    Sessions,
    /// The agents that the session can be set to; with a name, it is set to that one.
    Agents {
        wanted: Option<String>,
    },
    /// The session whose id begins like this.
    Find,
    Files {
        query: String,
    },
}

/// What the person who types has to be told or given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Sessions(Vec<PickerItem>),
    Agents(Vec<PickerItem>),
    Files {
        query: String,
        paths: Vec<String>,
    },
    /// A text that was not taken: it goes back to its writer.
    Unsent(String),
}
