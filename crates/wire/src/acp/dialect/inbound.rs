//! Requests in whatever words, put into those of version 1.

use serde_json::{Map, Value, json};

use super::{Dialect, key_case};
use crate::key_case::camel_case;

/// Bare method names, and what they are called now.
const METHOD_NAMES: [(&str, &str); 7] = [
    ("new_session", "session/new"),
    ("load_session", "session/load"),
    ("prompt", "session/prompt"),
    ("cancel", "session/cancel"),
    ("set_session_mode", "session/set_mode"),
    ("set_session_model", "session/set_model"),
    ("set_session_config_option", "session/set_config_option"),
];

/// Other names of parameters.
const KEY_NAMES: [(&str, &str); 13] = [
    ("session_id", "sessionId"),
    ("workspace_id", "sessionId"),
    ("mode_id", "modeId"),
    ("model_id", "modelId"),
    ("config_id", "configId"),
    ("method_id", "methodId"),
    ("device_id", "deviceId"),
    ("mcp_servers", "mcpServers"),
    ("additional_directories", "additionalDirectories"),
    ("protocol_version", "protocolVersion"),
    ("client_info", "clientInfo"),
    ("client_capabilities", "clientCapabilities"),
    ("mime_type", "mimeType"),
];

/// True for the method names of the legacy goose dialect.
pub(super) fn is_legacy_method(method: &str) -> bool {
    METHOD_NAMES.iter().any(|(bare, _)| *bare == method)
}

/// True for methods that name a session, by their names in version 1.
pub(super) fn names_session_in_params(method: &str) -> bool {
    method.strip_prefix("session/").is_some_and(|what| what != "new" && what != "list")
}

/// The dialect of a client that introduces itself so.
pub(super) fn detect_dialect(params: &Value) -> Dialect {
    match params.get("protocolVersion") {
        None | Some(Value::Null) => Dialect::Goosed,
        Some(Value::String(_)) if params.get("capabilities").is_some() => Dialect::Agentkit,
        Some(_) => Dialect::Standard,
    }
}

/// A request in the words of version 1.
pub(super) fn normalize_inbound_request(method: &str, params: Value) -> (&str, Value) {
    let standard = METHOD_NAMES.iter().find(|(bare, _)| *bare == method).map_or(method, |(_, standard)| *standard);
    let Value::Object(mut params) = params else { return (standard, params) };
    rename_inbound_keys(&mut params);
    match standard {
        "initialize" => normalize_inbound_initialize(&mut params),
        "session/new" => normalize_inbound_new_session(&mut params),
        "session/prompt" | "_session/steering" => normalize_inbound_prompt(&mut params),
        _ => {}
    }
    (standard, Value::Object(params))
}

/// A parameter under another name counts if there is none under its own.
fn rename_inbound_keys(params: &mut Map<String, Value>) {
    for (alias, standard) in KEY_NAMES {
        if !params.contains_key(standard)
            && let Some(value) = params.remove(alias)
        {
            params.insert(standard.to_owned(), value);
        }
    }
}

/// `capabilities` are the client's own; keys may have dots or underscores.
fn normalize_inbound_initialize(params: &mut Map<String, Value>) {
    let later = params.get("protocolVersion").and_then(Value::as_u64).is_some_and(|version| version >= 2);
    if !later
        && !params.contains_key("clientCapabilities")
        && let Some(capabilities) = params.remove("capabilities")
    {
        params.insert("clientCapabilities".to_owned(), capabilities);
    }
    if let Some(Value::Object(capabilities)) = params.get_mut("clientCapabilities") {
        let expanded = std::mem::take(capabilities).into_iter().fold(json!({}), |mut expanded, (key, value)| {
            if key == "_meta" {
                expanded[key] = value;
                return expanded;
            }
            let place = key.split('.').fold(&mut expanded, |place, step| &mut place[camel_case(step)]);
            *place = key_case::rename_keys_deep(value, camel_case);
            expanded
        });
        params.insert("clientCapabilities".to_owned(), expanded);
    }
}

/// The Go acp package says the folder among its facts about the session.
fn normalize_inbound_new_session(params: &mut Map<String, Value>) {
    let folder = params.get("metadata").and_then(|metadata| metadata.get("workDir")).cloned();
    if let Some(folder) = folder.filter(|_| !params.contains_key("cwd")) {
        params.insert("cwd".to_owned(), folder);
    }
}

/// A prompt may be a text, or be called `text` or `content`; a command may stand alone.
fn normalize_inbound_prompt(params: &mut Map<String, Value>) {
    let said = ["prompt", "content", "text"].into_iter().find_map(|key| params.remove(key));
    let blocks = match said {
        Some(Value::String(text)) => json!([{ "type": "text", "text": text }]),
        Some(Value::Array(blocks)) => Value::Array(blocks.into_iter().map(normalize_inbound_block).collect()),
        Some(other) => other,
        None if params.contains_key("command") => json!([]),
        None => return,
    };
    params.insert("prompt".to_owned(), blocks);
}

fn normalize_inbound_block(mut block: Value) -> Value {
    let Some(members) = block.as_object_mut() else { return block };
    rename_inbound_keys(members);
    if members.get("content").is_some_and(Value::is_string)
        && !members.contains_key("text")
        && let Some(content) = members.remove("content")
    {
        members.insert("text".to_owned(), content);
    }
    if members.contains_key("text") && !members.contains_key("type") {
        members.insert("type".to_owned(), json!("text"));
    }
    block
}
