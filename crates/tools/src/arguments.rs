//! Arguments of tool calls: from JSON into types that cannot be wrong.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ToolError;

/// Parses what a model gave, or says what is wrong with it.
pub fn parse_tool_arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| ToolError::failed(format!("arguments do not fit the tool: {error}")))
}

/// Refuses arguments of more than so many bytes.
pub fn check_argument_size(arguments: &Value, limit: usize) -> Result<(), ToolError> {
    let size = arguments.to_string().len();
    match size <= limit {
        true => Ok(()),
        false => Err(ToolError::failed(format!("arguments are longer than {limit} bytes: {size}"))),
    }
}
