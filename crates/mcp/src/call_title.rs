//! What a call of a server's tool is shown as.

use gander_domain::sanitize;
use serde_json::{Map, Value};

use super::catalogue::OfferedTool;
use super::session_handle::session_handle_line;

/// What will run, in one line.
///
/// The tool's own name and its arguments come first: a title that its server gives it says what the server likes.
pub(super) fn call_title(server: &str, offered: &OfferedTool, arguments: &Map<String, Value>) -> String {
    let given = if arguments.is_empty() { String::new() } else { format!(" {}", Value::Object(arguments.clone())) };
    let what = session_handle_line(&format!("{server}: {}{given}", offered.tool));
    match offered.title == offered.tool {
        true => what,
        false => format!("{what} ({})", sanitize::sanitized_prefix(&sanitize::sanitized_line(&offered.title), 120)),
    }
}

/// The arguments by name; `None` if they are no object.
pub(super) fn call_argument_fields(arguments: &Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Object(fields) => Some(fields.clone()),
        Value::Null => Some(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}
