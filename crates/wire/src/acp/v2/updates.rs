//! States and whole messages, as version 2 tells them.

use gander_domain::{Activity, Message, Outcome, Part, Role, SessionView};
use serde_json::{Value, json};

use crate::acp::content::acp_content_block;
use crate::acp::error::acp_prompt_outcome_or_error;
use crate::acp::schema::Usage;

/// The state that a session is in.
pub(in crate::acp) fn v2_state_update(view: &SessionView) -> Value {
    let waits = view.run.as_ref().is_some_and(|run| run.blocking_question().is_some());
    let state = match view.activity() {
        Activity::Idle => "idle",
        Activity::Running | Activity::Awaiting if waits => "requires_action",
        Activity::Running | Activity::Awaiting => "running",
    };
    json!({ "sessionUpdate": "state_update", "state": state })
}

/// The end of a run, and why: a failed one has a stop reason too.
pub(in crate::acp) fn v2_run_end_update(outcome: &Outcome, usage: Option<Usage>) -> Value {
    let mut ended = match acp_prompt_outcome_or_error(outcome) {
        Ok(stop) => json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop }),
        Err(error) => {
            json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": error })
        }
    };
    if let Some(usage) = usage {
        ended["usage"] = json!(usage);
    }
    ended
}

/// A whole message: what the agent thought and what it said are two.
pub(in crate::acp) fn v2_message_updates(message: &Message) -> Vec<Value> {
    let is_thought = |part: &&Part| matches!(part, Part::Thought { .. });
    let thoughts: Vec<_> = message.parts.iter().filter(is_thought).filter_map(v2_content_block).collect();
    let words: Vec<_> = message.parts.iter().filter(|part| !is_thought(part)).filter_map(v2_content_block).collect();
    let kind = match message.role {
        Role::User => "user_message",
        Role::Agent | Role::Tool => "agent_message",
    };
    let thought = json!({ "sessionUpdate": "agent_thought", "messageId": v2_thought_id(&message.id.to_string()), "content": thoughts });
    let said = json!({ "sessionUpdate": kind, "messageId": message.id, "content": words });
    let told = [(thoughts.is_empty(), thought), (words.is_empty(), said)];
    told.into_iter().filter(|(empty, _)| !empty).map(|(_, update)| update).collect()
}

/// Content that nobody here knows is passed on: version 2 has room for it.
fn v2_content_block(part: &Part) -> Option<Value> {
    if let Part::Unknown(block) = part
        && block["type"].is_string()
    {
        return Some(block.clone());
    }
    acp_content_block(part).map(|block| json!(block))
}

/// Thoughts have an id of their own: in the log they are parts of the message that they led to.
pub(super) fn v2_thought_id(message: &str) -> String {
    format!("{message}-thought")
}
