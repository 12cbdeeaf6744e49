//! Tool calls: what is wanted, what it touches, what came of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Part, ToolCallId};

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub schema: Value,
}

/// One use of a tool, as people and policies see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id.
    pub id: ToolCallId,
    /// The tool's name, such as `shell`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// Exactly the arguments that will be used.
    pub arguments: Value,
    /// Files it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// True if running it twice is the same as running it once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

/// What sort of thing a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks at something.
    Read,
    /// Changes content.
    Edit,
    /// Removes something.
    Delete,
    /// Renames something.
    Move,
    /// Looks for something.
    Search,
    /// Runs a command.
    Execute,
    /// Plans or thinks.
    Think,
    /// Gets something from elsewhere.
    Fetch,
    /// Changes the mode.
    SwitchMode,
    /// Anything else.
    Other,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Absolute path.
    pub path: String,
    /// First line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What a tool shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    /// Text, a picture, a link.
    Part {
        /// The part.
        part: Part,
    },
    /// A change of one file.
    Diff {
        /// Absolute path.
        path: String,
        /// Before; absent for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// After.
        new: String,
    },
    /// A terminal that the client owns and shows.
    Terminal {
        /// The client's id for it.
        id: String,
    },
}

/// How a tool call ended and what the model is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// How it ended.
    pub end: ToolEnd,
    /// What it gave, for the model and for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    /// The tool's own structured output, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEnd {
    /// It did what was asked.
    Completed,
    /// It ran and failed, or could not run.
    Failed,
    /// A person or a policy said no; it never ran.
    Rejected,
    /// The run was cancelled; it was stopped or never ran.
    Cancelled,
    /// It may have run: nobody knows how it ended. Never run again unasked.
    Interrupted,
}

impl ToolResult {
    /// A result of one text.
    pub fn text(end: ToolEnd, text: impl Into<String>) -> Self {
        Self { end, content: vec![ToolContent::Part { part: Part::text(text) }], raw: None }
    }
}
