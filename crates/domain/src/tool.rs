//! Tools as a model sees them, and their calls as people and policies see them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolCallId;

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, an object. Shared: a list of tools is made for every run.
    pub schema: Arc<Value>,
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
    /// A folder, as searches have them: no file that an editor could open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folder: bool,
}

impl Location {
    /// A file, from its first line.
    pub fn file(path: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, folder: false }
    }
}
