//! Scripts of the demo: what to say in each call, as data.
//!
//! A message may carry its own: `[[script:[{"text":"hi"}]]]`, or a list of lists for several calls.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ModelError, ModelStop};

const MARK: &str = "[[script:";
const SCENES: &str = include_str!("scenes.json");

/// The steps of one call.
pub type ScriptedCall = Vec<Step>;

/// Something to try, by a word.
#[derive(Debug, Deserialize)]
pub struct Scene {
    /// The word that asks for it.
    pub word: String,
    /// What it shows.
    pub about: String,
    /// Its calls, in order.
    pub calls: Vec<ScriptedCall>,
}

/// One step of a call. What is named is played, in the order of these fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// Thinks this.
    pub thought: Option<String>,
    /// Says this.
    pub text: Option<String>,
    /// Calls this tool.
    pub tool: Option<String>,
    /// With these arguments.
    pub args: Option<Value>,
    /// Shows a small picture.
    pub image: bool,
    /// Tells what the tools gave.
    pub results: bool,
    /// Claims this usage.
    pub usage: Option<ScriptedUsage>,
    /// Stops for this reason.
    pub stop: Option<ScriptedStop>,
    /// Fails for this reason.
    pub error: Option<ScriptedFailure>,
    /// In how many pieces; absent: one.
    pub chunks: Option<usize>,
    /// How often; absent: once.
    pub repeat: Option<usize>,
    /// How long to wait before each piece.
    pub delay_ms: u64,
}

/// A plan where no tool keeps one: proposed with this tool, or told as text.
pub fn scripted_plan_without_tool(propose: Option<&str>) -> Vec<ScriptedCall> {
    let steps = ["show a plan", "tick it off"];
    match propose {
        Some(tool) => {
            let items: Vec<Value> = steps.iter().map(|step| json!({ "text": step, "priority": "medium" })).collect();
            let call = Step { tool: Some(tool.to_owned()), args: Some(json!({ "items": items })), ..Step::default() };
            vec![vec![call], vec![Step { results: true, ..Step::default() }]]
        }
        None => {
            let text = format!(
                "This mode has no tool for plans, so here it is as text:\n\n1. {}\n2. {}\n",
                steps[0], steps[1]
            );
            vec![vec![Step { text: Some(text), chunks: Some(4), ..Step::default() }]]
        }
    }
}

/// A claimed usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedUsage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub thinking: u64,
}

/// A reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedStop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    StopSequence,
}

/// A reason to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedFailure {
    Unauthorized,
    NoCredit,
    RateLimited,
    Overloaded,
    ContextTooLong,
    NotFound,
    BadRequest,
    Refused,
    Network,
    TimedOut,
    Idle,
    BadStream,
    BadArguments,
}

/// Everything there is to try.
pub fn demo_scenes() -> Vec<Scene> {
    serde_json::from_str(SCENES).expect("a test reads the built-in scenes")
}

/// The script that a message carries, if it carries one.
pub fn parse_demo_script(text: &str) -> Option<Result<Vec<ScriptedCall>, ModelError>> {
    let (_, rest) = text.split_once(MARK)?;
    let bad = |error: &dyn std::fmt::Display| ModelError::BadRequest(format!("the script cannot be read: {error}"));
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let script = match values.next() {
        Some(Ok(script)) => script,
        Some(Err(error)) => return Some(Err(bad(&error))),
        None => return Some(Err(bad(&"nothing follows"))),
    };
    if !rest[values.byte_offset()..].trim_start().starts_with("]]") {
        return Some(Err(bad(&"it does not end with ]]")));
    }
    let is_list_of_lists = script.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_array));
    let calls = if is_list_of_lists {
        serde_json::from_value(script)
    } else {
        serde_json::from_value(script).map(|call| vec![call])
    };
    Some(calls.map_err(|error| bad(&error)))
}

impl From<ScriptedStop> for ModelStop {
    fn from(stop: ScriptedStop) -> Self {
        match stop {
            ScriptedStop::EndTurn => Self::EndTurn,
            ScriptedStop::ToolUse => Self::ToolUse,
            ScriptedStop::MaxTokens => Self::MaxTokens,
            ScriptedStop::Refusal => Self::Refusal,
            ScriptedStop::StopSequence => Self::StopSequence,
        }
    }
}

impl From<ScriptedFailure> for ModelError {
    fn from(failure: ScriptedFailure) -> Self {
        let message = "the scripted demo failed on purpose".to_owned();
        match failure {
            ScriptedFailure::Unauthorized => Self::Unauthorized(message),
            ScriptedFailure::NoCredit => Self::NoCredit(message),
            ScriptedFailure::RateLimited => Self::RateLimited { message, retry_after: None },
            ScriptedFailure::Overloaded => Self::Overloaded { message, retry_after: None },
            ScriptedFailure::ContextTooLong => Self::ContextTooLong(message),
            ScriptedFailure::NotFound => Self::NotFound(message),
            ScriptedFailure::BadRequest => Self::BadRequest(message),
            ScriptedFailure::Refused => Self::Refused(message),
            ScriptedFailure::Network => Self::Network(message),
            ScriptedFailure::TimedOut => Self::TimedOut(message),
            ScriptedFailure::Idle => Self::Idle(message),
            ScriptedFailure::BadStream => Self::BadStream(message),
            ScriptedFailure::BadArguments => Self::BadArguments(message),
        }
    }
}
