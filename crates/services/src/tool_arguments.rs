//! What the tools that services lend to runs share: schemas, arguments and previews.

use gander_domain::{ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::{ToolError, ToolPreview};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A tool that takes these properties and no others.
pub fn tool_spec_with_arguments(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema:
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
                .into(),
    }
}

/// Arguments as the tool takes them, or what the model is told.
pub fn parse_tool_arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| ToolError::failed(format!("arguments do not fit the tool: {error}")))
}

/// A call that touches no file of the workspace. Only one that reads may run twice.
pub fn tool_call_preview((title, kind): (String, ToolKind)) -> ToolPreview {
    ToolPreview { title, kind, locations: Vec::new(), idempotent: kind == ToolKind::Read }
}

/// What the model is told of a call that was carried out, or why it was not.
pub fn tool_text_result(done: Result<String, impl ToString>) -> Result<ToolResult, ToolError> {
    done.map(|text| ToolResult::text(ToolEnd::Completed, text)).map_err(|error| ToolError::failed(error.to_string()))
}
