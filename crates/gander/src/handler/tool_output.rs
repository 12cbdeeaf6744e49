//! What a tool gives.

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use serde_json::Value;

/// What a tool shows or gives: text, a value, or a list of contents such as the change of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// For people and models.
    pub content: Vec<ToolContent>,
    /// The tool's own structured output, if it has one.
    pub raw: Option<Value>,
}

/// A tool ran and failed, with what it said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolFailure(pub String);

impl ToolOutput {
    /// Its texts, one per line.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            ToolContent::Part { part: Part::Text { text } } => Some(text.as_str()),
            ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn into_result(self, end: ToolEnd) -> ToolResult {
        ToolResult { end, content: self.content, raw: self.raw }
    }

    pub(super) fn of_result(result: ToolResult) -> Result<Self, ToolFailure> {
        let output = Self { content: result.content, raw: result.raw };
        match result.end {
            ToolEnd::Completed => Ok(output),
            ToolEnd::Failed | ToolEnd::Rejected | ToolEnd::Cancelled | ToolEnd::Interrupted => {
                Err(ToolFailure(output.text()))
            }
        }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Part::text(text).into()
    }
}

impl From<Part> for ToolOutput {
    fn from(part: Part) -> Self {
        Self { content: vec![ToolContent::Part { part }], raw: None }
    }
}

impl From<Vec<ToolContent>> for ToolOutput {
    fn from(content: Vec<ToolContent>) -> Self {
        Self { content, raw: None }
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { raw: Some(value.clone()), ..Self::from(value.to_string()) }
    }
}
