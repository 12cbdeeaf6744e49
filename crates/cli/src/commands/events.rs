//! What is heard of a session, as one JSON object per line: for scripts.

use gander_wire::acp::client::Heard;
use gander_wire::acp::schema::{PermissionOption, StopReason, ToolCallUpdate};
use serde_json::{Value, json};

/// The session that speaks.
pub(super) fn session(id: &str) -> Value {
    json!({ "type": "session", "session": id })
}

/// Something that happened in it.
pub(super) fn heard(heard: &Heard) -> Value {
    match heard {
        Heard::User(text) => json!({ "type": "user", "text": text }),
        Heard::Agent(text) => json!({ "type": "text", "text": text }),
        Heard::Thought(text) => json!({ "type": "thought", "text": text }),
        Heard::Content(update) => json!({ "type": "content", "update": update }),
        Heard::Tool(call) => json!({ "type": "tool", "call": call }),
        Heard::ToolChanged(update) => json!({ "type": "tool_update", "update": update }),
        Heard::Plan(plan) => json!({ "type": "plan", "plan": plan }),
        Heard::Title(title) => json!({ "type": "title", "title": title }),
        Heard::Mode(mode) => json!({ "type": "mode", "mode": mode }),
        Heard::Usage { used, size, cost } => json!({ "type": "usage", "used": used, "size": size, "cost": cost }),
        Heard::Other(update) => json!({ "type": "other", "update": update }),
    }
}

/// A question, and what it is answered with.
pub(super) fn question(tool: &ToolCallUpdate, options: &[PermissionOption], answer: Option<&str>) -> Value {
    json!({ "type": "question", "tool": tool, "options": options, "answer": answer })
}

/// The end of the turn.
pub(super) fn end(stop: &StopReason) -> Value {
    json!({ "type": "end", "stop": stop })
}

/// The turn failed.
pub(super) fn failed(message: &str) -> Value {
    json!({ "type": "error", "message": message })
}
