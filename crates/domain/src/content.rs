//! Content: the parts of messages and the results of tools, which hold each other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolCallId;

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// What the model thought before it spoke.
    Thought {
        /// The words, possibly a summary by the provider.
        text: String,
    },
    /// A picture.
    Image {
        /// Such as `image/png`.
        mime: String,
        /// Base64.
        data: String,
        /// Where it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    /// A sound.
    Audio {
        /// Such as `audio/wav`.
        mime: String,
        /// Base64.
        data: String,
    },
    /// A pointer to something that the agent may read.
    Link {
        uri: String,
        /// A label.
        name: String,
        /// Its type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
        /// Everything else the sender said about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<Value>,
    },
    /// Something whole that was sent along.
    Resource {
        /// Its name.
        uri: String,
        /// Its type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
        /// Its text, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Base64, if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
    /// The agent wants a tool. What became of it is told by the tool events.
    ToolUse {
        /// Its id.
        call: ToolCallId,
        /// The tool's name.
        name: String,
        /// Its arguments, as the model gave them.
        arguments: Value,
    },
    /// What a tool gave back (role [`Role::Tool`] only).
    ToolResult {
        /// Which call.
        call: ToolCallId,
        /// What came of it.
        result: ToolResult,
    },
    /// Content of a kind this version does not know: kept as it came.
    #[serde(untagged)]
    Unknown(Value),
}

/// A part that grows by deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// Grows a [`Part::Text`].
    Text,
    /// Grows a [`Part::Thought`].
    Thought,
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

impl Part {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// An empty part that deltas of this kind grow.
    pub fn empty_for_delta(growth: DeltaKind) -> Self {
        match growth {
            DeltaKind::Text => Self::Text { text: String::new() },
            DeltaKind::Thought => Self::Thought { text: String::new() },
        }
    }
}
