//! The profile of a model: what is known about it, and how its provider differs from others on the same wire.

use serde::Deserialize;

use super::ModelInfo;

/// What a request is encoded for.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model.
    pub info: ModelInfo,
    /// How its provider differs.
    pub quirks: Quirks,
}

/// How a provider differs from others on the same wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// How it is told how hard to think.
    pub effort: EffortStyle,
    /// Its word for not thinking at all; absent: it cannot be told so.
    pub effort_off: Option<String>,
    /// Chat: the output limit is called `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Chat: usage comes unasked and asking is an error.
    pub no_stream_options: bool,
    /// Chat: wants its own reasoning back with its tool calls.
    pub replay_reasoning: bool,
    /// Chat: takes only ids of nine letters and digits.
    pub short_tool_ids: bool,
    /// Responses: no summaries of the reasoning (needs a verified organisation).
    pub no_summary: bool,
}

/// How a model is told how hard to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortStyle {
    /// It cannot be told.
    #[default]
    None,
    /// Chat: `reasoning_effort`; Responses: `reasoning.effort`.
    Word,
    /// Chat: a `reasoning` object.
    Object,
    /// Anthropic: a budget of tokens.
    Budget,
    /// Anthropic: adaptive thinking with an effort.
    Adaptive,
}
