//! What 1.0 calls by other names than 0.3 did: the way out.

use serde_json::{Map, Value, json};

use super::update::TaskUpdate;
use super::{Artifact, Content, Dialect, Message, Part, PushConfig, Role, Task, TaskStatus};

/// One event of a stream.
pub(super) fn event_json(dialect: Dialect, update: &TaskUpdate<'_>) -> Value {
    match update {
        TaskUpdate::Begin(begun) => in_named_field(dialect, "task", task_json(dialect, begun)),
        TaskUpdate::Reply(said) | TaskUpdate::Said(said) => {
            in_named_field(dialect, "message", message_json(dialect, said))
        }
        TaskUpdate::Status(update) => {
            let mut event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": status_json(dialect, &update.status),
                "final": update.status.state.is_terminal() || update.status.state.is_interrupted(),
            });
            with_metadata(&mut event, update.metadata.as_ref());
            in_named_field(dialect, "status-update", event)
        }
        TaskUpdate::Artifact(update) => {
            let event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "artifact": artifact_json(dialect, &update.artifact),
                "append": update.append,
                "lastChunk": update.last_chunk,
            });
            in_named_field(dialect, "artifact-update", event)
        }
        TaskUpdate::Chunk(chunk) => {
            let part = part_json(dialect, &Part::text(chunk.text.as_ref()));
            let artifact = json!({ "artifactId": chunk.artifact, "parts": [part] });
            in_named_field(dialect, "artifact-update", json!({ "artifact": artifact, "append": chunk.append }))
        }
    }
}

/// A task.
pub(super) fn task_json(dialect: Dialect, task: &Task) -> Value {
    let mut value = json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": status_json(dialect, &task.status),
    });
    if !task.artifacts.is_empty() {
        value["artifacts"] = task.artifacts.iter().map(|made| artifact_json(dialect, made)).collect();
    }
    if !task.history.is_empty() {
        value["history"] = task.history.iter().map(|said| message_json(dialect, said)).collect();
    }
    with_metadata(&mut value, task.metadata.as_ref());
    with_kind(dialect, "task", value)
}

/// A message.
pub fn message_json(dialect: Dialect, message: &Message) -> Value {
    let role = match (dialect, message.role) {
        (Dialect::V03, Role::User) => "user",
        (Dialect::V03, Role::Agent) => "agent",
        (Dialect::V1 | Dialect::V03Rest, Role::User) => "ROLE_USER",
        (Dialect::V1 | Dialect::V03Rest, Role::Agent) => "ROLE_AGENT",
    };
    let parts: Value = message.parts.iter().map(|said| part_json(dialect, said)).collect();
    let name = if dialect == Dialect::V03Rest { "content" } else { "parts" };
    let mut value = json!({ "messageId": message.message_id, "role": role, name: parts });
    let mut set = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            value[name] = text.clone().into();
        }
    };
    set("contextId", &message.context_id);
    set("taskId", &message.task_id);
    if !message.extensions.is_empty() {
        value["extensions"] = json!(message.extensions);
    }
    if !message.reference_task_ids.is_empty() && dialect == Dialect::V03 {
        value["referenceTaskIds"] = json!(message.reference_task_ids);
    }
    with_metadata(&mut value, message.metadata.as_ref());
    with_kind(dialect, "message", value)
}

/// Where updates are sent.
pub(super) fn push_config_json(dialect: Dialect, config: &PushConfig) -> Value {
    let mut inner = json!({ "id": config.id, "url": config.url });
    if let Some(token) = &config.token {
        inner["token"] = token.clone().into();
    }
    if let Some(authentication) = &config.authentication {
        inner["authentication"] = json!({ "schemes": [authentication.scheme] });
        if let Some(credentials) = &authentication.credentials {
            inner["authentication"]["credentials"] = credentials.clone().into();
        }
    }
    match dialect {
        Dialect::V1 | Dialect::V03 => json!({ "taskId": config.task_id, "pushNotificationConfig": inner }),
        Dialect::V03Rest => {
            let name = format!("tasks/{}/pushNotificationConfigs/{}", config.task_id, config.id);
            json!({ "name": name, "pushNotificationConfig": inner })
        }
    }
}

fn status_json(dialect: Dialect, status: &TaskStatus) -> Value {
    let state = match dialect {
        Dialect::V03 => json!(status.state.name()),
        // The protobuf of 0.3 spells this one with two l.
        Dialect::V1 | Dialect::V03Rest if status.state == super::TaskState::Canceled => json!("TASK_STATE_CANCELLED"),
        Dialect::V1 | Dialect::V03Rest => json!(status.state),
    };
    let mut value = json!({ "state": state, "timestamp": status.timestamp });
    if let Some(said) = &status.message {
        value["message"] = message_json(dialect, said);
    }
    value
}

fn artifact_json(dialect: Dialect, artifact: &Artifact) -> Value {
    let parts: Value = artifact.parts.iter().map(|made| part_json(dialect, made)).collect();
    let mut value = json!({ "artifactId": artifact.artifact_id, "parts": parts });
    if let Some(name) = &artifact.name {
        value["name"] = name.clone().into();
    }
    value
}

fn part_json(dialect: Dialect, part: &Part) -> Value {
    let mut value = match (dialect, &part.content) {
        (Dialect::V03, Content::Text(text)) => json!({ "kind": "text", "text": text }),
        (Dialect::V03, Content::Data(data)) => json!({ "kind": "data", "data": data_object(data) }),
        (Dialect::V03, Content::Raw(bytes)) => json!({ "kind": "file", "file": file_json("bytes", bytes, part) }),
        (Dialect::V03, Content::Url(uri)) => json!({ "kind": "file", "file": file_json("uri", uri, part) }),
        (Dialect::V1 | Dialect::V03Rest, Content::Text(text)) => json!({ "text": text }),
        (Dialect::V1 | Dialect::V03Rest, Content::Data(data)) => json!({ "data": { "data": data_object(data) } }),
        (Dialect::V1 | Dialect::V03Rest, Content::Raw(bytes)) => {
            json!({ "file": file_json("fileWithBytes", bytes, part) })
        }
        (Dialect::V1 | Dialect::V03Rest, Content::Url(uri)) => json!({ "file": file_json("fileWithUri", uri, part) }),
    };
    if dialect == Dialect::V03 {
        with_metadata(&mut value, part.metadata.as_ref());
        if let (Some(filename), Some(file)) = (&part.filename, value.get_mut("file")) {
            file["name"] = filename.clone().into();
        }
    }
    value
}

/// The protobuf of 0.3.0 has no place for a file's name.
fn file_json(name: &str, content: &str, part: &Part) -> Value {
    let mut file = json!({ name: content });
    if let Some(mime) = &part.media_type {
        file["mimeType"] = mime.clone().into();
    }
    file
}

/// In 0.3 data is always an object.
fn data_object(data: &Value) -> Value {
    if data.is_object() { data.clone() } else { json!({ "value": data }) }
}

fn with_metadata(value: &mut Value, metadata: Option<&Map<String, Value>>) {
    if let Some(metadata) = metadata {
        value["metadata"] = metadata.clone().into();
    }
}

/// JSON-RPC tells what it is by `kind`.
fn with_kind(dialect: Dialect, kind: &str, mut value: Value) -> Value {
    if dialect == Dialect::V03 {
        value["kind"] = kind.into();
    }
    value
}

/// HTTP+JSON tells what it is by the name of the only field.
fn in_named_field(dialect: Dialect, kind: &str, value: Value) -> Value {
    match (dialect, kind) {
        (Dialect::V03, _) => with_kind(dialect, kind, value),
        (Dialect::V1 | Dialect::V03Rest, "task") => json!({ "task": value }),
        (Dialect::V1 | Dialect::V03Rest, "message") => json!({ "message": value }),
        (Dialect::V1 | Dialect::V03Rest, "status-update") => json!({ "statusUpdate": value }),
        (Dialect::V1 | Dialect::V03Rest, _) => json!({ "artifactUpdate": value }),
    }
}
