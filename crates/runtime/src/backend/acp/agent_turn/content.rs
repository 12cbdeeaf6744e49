//! Content of an agent in our words, and what of it we would tell again.

use gander_client::schema::{self, ContentBlock, ToolCallContent};
use gander_domain::sanitize;
use gander_domain::{Location, Part, Plan, PlanItem, ToolContent};
use gander_wire::acp::AgentProfile;
use gander_wire::acp::content::{acp_content_block, acp_prompt_parts};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A block as a part; what cannot be checked is kept as it came.
pub(super) fn agent_turn_block_part(block: ContentBlock) -> Part {
    let raw = json!(block);
    let profile = AgentProfile { image: true, audio: true, ..AgentProfile::default() };
    let read = acp_prompt_parts(vec![block], &profile).ok().and_then(|mut parts| parts.pop());
    read.unwrap_or(Part::Unknown(raw))
}

/// The part as it is told to a client.
pub(super) fn shown_block(part: &Part) -> Value {
    acp_content_block(part).map(|block| json!(block)).unwrap_or_default()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
pub(super) fn agent_turn_tool_content(content: ToolCallContent) -> ToolContent {
    match content {
        ToolCallContent::Content(content) => ToolContent::Part { part: agent_turn_block_part(content.content) },
        ToolCallContent::Diff(diff) => {
            let path = diff.path.to_string_lossy().into_owned();
            ToolContent::Diff { path, old: diff.old_text, new: diff.new_text }
        }
        other => ToolContent::Part { part: Part::Unknown(json!(other)) },
    }
}

/// What an approval would do, as the agent says: text that a screen would hide or obey is written out.
pub(super) fn agent_turn_preview(content: Vec<ToolCallContent>) -> Vec<ToolContent> {
    let shown = content.into_iter().map(agent_turn_tool_content);
    let readable = shown.map(|content| match content {
        ToolContent::Part { part: Part::Text { text } } => {
            ToolContent::Part { part: Part::text(sanitize::sanitized_text(&text)) }
        }
        other @ (ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. }) => other,
    });
    readable.collect()
}

pub(super) fn agent_turn_tool_location(location: &schema::ToolCallLocation) -> Location {
    Location { line: location.line, ..Location::file(location.path.to_string_lossy()) }
}

pub(super) fn agent_turn_plan(told: &schema::Plan) -> Plan {
    let item = |entry: &schema::PlanEntry| PlanItem {
        text: entry.content.clone(),
        priority: agent_turn_word_by_name(&entry.priority).unwrap_or_default(),
        status: agent_turn_word_by_name(&entry.status).unwrap_or_default(),
    };
    Plan { items: told.entries.iter().map(item).collect() }
}

/// An item as it is told to a client.
pub(super) fn shown_plan_item(item: &PlanItem) -> Value {
    json!({ "content": item.text, "priority": item.priority, "status": item.status })
}

/// The protocol's word for something that we call the same.
pub(super) fn agent_turn_word_by_name<T: DeserializeOwned>(word: &impl Serialize) -> Option<T> {
    serde_json::from_value(json!(word)).ok()
}
