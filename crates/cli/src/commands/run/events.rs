//! What is heard of a session, as one JSON object per line: for scripts.

use gander_wire::acp::client::ShownUpdate;
use gander_wire::acp::schema::{PermissionOption, ToolCallUpdate};
use serde_json::{Value, json};

/// The session that speaks.
pub(crate) fn session_event_json(id: &str) -> Value {
    json!({ "type": "session", "session": id })
}

/// Something that happened in it.
pub(crate) fn update_event_json(heard: &ShownUpdate) -> Value {
    match heard {
        ShownUpdate::User(text) => json!({ "type": "user", "text": text }),
        ShownUpdate::Agent(text) => json!({ "type": "text", "text": text }),
        ShownUpdate::Thought(text) => json!({ "type": "thought", "text": text }),
        ShownUpdate::Content(update) => json!({ "type": "content", "update": update }),
        ShownUpdate::Tool(call) => json!({ "type": "tool", "call": call }),
        ShownUpdate::ToolChanged(update) => json!({ "type": "tool_update", "update": update }),
        ShownUpdate::Plan(plan) => json!({ "type": "plan", "plan": plan }),
        ShownUpdate::Title(title) => json!({ "type": "title", "title": title }),
        ShownUpdate::Mode(mode) => json!({ "type": "mode", "mode": mode }),
        ShownUpdate::Usage { used, size, cost } => json!({ "type": "usage", "used": used, "size": size, "cost": cost }),
        ShownUpdate::Other(update) => json!({ "type": "other", "update": update }),
    }
}

/// A question, and what it is answered with.
pub(crate) fn question_event_json(tool: &ToolCallUpdate, options: &[PermissionOption], answer: Option<&str>) -> Value {
    json!({ "type": "question", "tool": tool, "options": options, "answer": answer })
}

/// The end of the turn, and what it used if anybody counted.
pub(crate) fn end_event_json(stop: &Value, usage: Option<&Value>) -> Value {
    match usage {
        Some(usage) => json!({ "type": "end", "stop": stop, "usage": usage }),
        None => json!({ "type": "end", "stop": stop }),
    }
}

/// The turn failed.
pub(crate) fn failed_event_json(message: &str) -> Value {
    json!({ "type": "error", "message": message })
}
