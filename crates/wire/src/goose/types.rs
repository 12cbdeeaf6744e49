//! The objects of goose's wire.

use gander_domain::view::UsageTotals;
use gander_domain::{SessionView, Timestamp, Usage};
use serde::Serialize;
use serde_json::{Value, json};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GooseMessage {
    /// Absent for what is not part of the history.
    pub id: Option<String>,
    /// `user` or `assistant`.
    pub role: &'static str,
    /// Seconds since 1970.
    pub created: i64,
    /// Its content, each piece with a `type`.
    pub content: Vec<Value>,
    /// Who may see it.
    pub metadata: Metadata,
}

/// Who may see a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// People.
    pub user_visible: bool,
    /// The model.
    pub agent_visible: bool,
}

impl Metadata {
    /// For people and the model.
    pub const ALL: Self = Self { user_visible: true, agent_visible: true };
    /// For people only.
    pub const PEOPLE: Self = Self { user_visible: true, agent_visible: false };
}

/// What model calls cost: the last one, and all together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenState {
    last: (u64, u64),
    all: UsageTotals,
}

impl TokenState {
    /// What a session has spent.
    pub fn from_view(view: &SessionView) -> Self {
        let last = view.last_usage.as_ref().map_or((0, 0), |usage| (usage.input, usage.output));
        Self { last, all: view.spent }
    }

    /// Adds one more model call.
    pub fn add_usage(&mut self, usage: &Usage) {
        self.last = (usage.input, usage.output);
        self.all.input += usage.input;
        self.all.output += usage.output;
        self.all.cost += usage.cost.unwrap_or(0);
    }

    /// As goose writes it, with the snake_case twins that adk2goose reads.
    pub fn to_json(&self) -> Value {
        let ((input, output), all) = (self.last, self.all);
        json!({
            "inputTokens": input, "outputTokens": output, "totalTokens": input + output,
            "accumulatedInputTokens": all.input, "accumulatedOutputTokens": all.output,
            "accumulatedTotalTokens": all.input + all.output, "accumulatedCost": goose_cost_in_dollars(all.cost),
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        })
    }
}

/// Millionths of a dollar as dollars; null if nothing is known.
pub(super) fn goose_cost_in_dollars(cost: u64) -> Option<f64> {
    (cost > 0).then_some(cost as f64 / 1e6)
}

/// Seconds since 1970.
pub(super) fn goose_epoch_seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}
