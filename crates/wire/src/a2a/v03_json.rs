//! What 1.0 calls by other names than 0.3 did: the way out.

use serde_json::{Map, Value, json};

use super::update::TaskUpdate;
use super::{A2aArtifact, A2aDialect, A2aMessage, A2aPart, A2aPartContent, A2aRole, A2aTask, PushConfig, TaskStatus};

/// One event of a stream.
pub(super) fn v03_event_json(dialect: A2aDialect, update: &TaskUpdate<'_>) -> Value {
    match update {
        TaskUpdate::Begin(begun) => in_v03_named_field(dialect, "task", v03_task_json(dialect, begun)),
        TaskUpdate::Reply(said) | TaskUpdate::Said(said) => {
            in_v03_named_field(dialect, "message", v03_message_json(dialect, said))
        }
        TaskUpdate::Status(update) => {
            let mut event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": v03_status_json(dialect, &update.status),
                "final": update.status.state.is_terminal() || update.status.state.is_interrupted(),
            });
            with_v03_metadata(&mut event, update.metadata.as_ref());
            in_v03_named_field(dialect, "status-update", event)
        }
        TaskUpdate::Artifact(update) => {
            let event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "artifact": v03_artifact_json(dialect, &update.artifact),
                "append": update.append,
                "lastChunk": update.last_chunk,
            });
            in_v03_named_field(dialect, "artifact-update", event)
        }
        TaskUpdate::Chunk(chunk) => {
            let part = v03_part_json(dialect, &A2aPart::text(chunk.text.as_ref()));
            let artifact = json!({ "artifactId": chunk.artifact, "parts": [part] });
            in_v03_named_field(dialect, "artifact-update", json!({ "artifact": artifact, "append": chunk.append }))
        }
    }
}

/// A task.
pub(super) fn v03_task_json(dialect: A2aDialect, task: &A2aTask) -> Value {
    let mut value = json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": v03_status_json(dialect, &task.status),
    });
    if !task.artifacts.is_empty() {
        value["artifacts"] = task.artifacts.iter().map(|made| v03_artifact_json(dialect, made)).collect();
    }
    if !task.history.is_empty() {
        value["history"] = task.history.iter().map(|said| v03_message_json(dialect, said)).collect();
    }
    with_v03_metadata(&mut value, task.metadata.as_ref());
    with_v03_kind(dialect, "task", value)
}

/// A message.
pub fn v03_message_json(dialect: A2aDialect, message: &A2aMessage) -> Value {
    let role = match (dialect, message.role) {
        (A2aDialect::V03, A2aRole::User) => "user",
        (A2aDialect::V03, A2aRole::Agent) => "agent",
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aRole::User) => "ROLE_USER",
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aRole::Agent) => "ROLE_AGENT",
    };
    let parts: Value = message.parts.iter().map(|said| v03_part_json(dialect, said)).collect();
    let name = if dialect == A2aDialect::V03Rest { "content" } else { "parts" };
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
    if !message.reference_task_ids.is_empty() && dialect == A2aDialect::V03 {
        value["referenceTaskIds"] = json!(message.reference_task_ids);
    }
    with_v03_metadata(&mut value, message.metadata.as_ref());
    with_v03_kind(dialect, "message", value)
}

/// Where updates are sent.
pub(super) fn v03_push_config_json(dialect: A2aDialect, config: &PushConfig) -> Value {
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
        A2aDialect::V1 | A2aDialect::V03 => json!({ "taskId": config.task_id, "pushNotificationConfig": inner }),
        A2aDialect::V03Rest => {
            let name = format!("tasks/{}/pushNotificationConfigs/{}", config.task_id, config.id);
            json!({ "name": name, "pushNotificationConfig": inner })
        }
    }
}

fn v03_status_json(dialect: A2aDialect, status: &TaskStatus) -> Value {
    let state = match dialect {
        A2aDialect::V03 => json!(status.state.name()),
        // The protobuf of 0.3 spells this one with two l.
        A2aDialect::V1 | A2aDialect::V03Rest if status.state == super::TaskState::Canceled => {
            json!("TASK_STATE_CANCELLED")
        }
        A2aDialect::V1 | A2aDialect::V03Rest => json!(status.state),
    };
    let mut value = json!({ "state": state, "timestamp": status.timestamp });
    if let Some(said) = &status.message {
        value["message"] = v03_message_json(dialect, said);
    }
    value
}

fn v03_artifact_json(dialect: A2aDialect, artifact: &A2aArtifact) -> Value {
    let parts: Value = artifact.parts.iter().map(|made| v03_part_json(dialect, made)).collect();
    let mut value = json!({ "artifactId": artifact.artifact_id, "parts": parts });
    if let Some(name) = &artifact.name {
        value["name"] = name.clone().into();
    }
    value
}

fn v03_part_json(dialect: A2aDialect, part: &A2aPart) -> Value {
    let mut value = match (dialect, &part.content) {
        (A2aDialect::V03, A2aPartContent::Text(text)) => json!({ "kind": "text", "text": text }),
        (A2aDialect::V03, A2aPartContent::Data(data)) => json!({ "kind": "data", "data": v03_data_object(data) }),
        (A2aDialect::V03, A2aPartContent::Raw(bytes)) => {
            json!({ "kind": "file", "file": v03_file_json("bytes", bytes, part) })
        }
        (A2aDialect::V03, A2aPartContent::Url(uri)) => {
            json!({ "kind": "file", "file": v03_file_json("uri", uri, part) })
        }
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aPartContent::Text(text)) => json!({ "text": text }),
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aPartContent::Data(data)) => {
            json!({ "data": { "data": v03_data_object(data) } })
        }
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aPartContent::Raw(bytes)) => {
            json!({ "file": v03_file_json("fileWithBytes", bytes, part) })
        }
        (A2aDialect::V1 | A2aDialect::V03Rest, A2aPartContent::Url(uri)) => {
            json!({ "file": v03_file_json("fileWithUri", uri, part) })
        }
    };
    if dialect == A2aDialect::V03 {
        with_v03_metadata(&mut value, part.metadata.as_ref());
        if let (Some(filename), Some(file)) = (&part.filename, value.get_mut("file")) {
            file["name"] = filename.clone().into();
        }
    }
    value
}

/// The protobuf of 0.3.0 has no place for a file's name.
fn v03_file_json(name: &str, content: &str, part: &A2aPart) -> Value {
    let mut file = json!({ name: content });
    if let Some(mime) = &part.media_type {
        file["mimeType"] = mime.clone().into();
    }
    file
}

/// In 0.3 data is always an object.
fn v03_data_object(data: &Value) -> Value {
    if data.is_object() { data.clone() } else { json!({ "value": data }) }
}

fn with_v03_metadata(value: &mut Value, metadata: Option<&Map<String, Value>>) {
    if let Some(metadata) = metadata {
        value["metadata"] = metadata.clone().into();
    }
}

/// JSON-RPC tells what it is by `kind`.
fn with_v03_kind(dialect: A2aDialect, kind: &str, mut value: Value) -> Value {
    if dialect == A2aDialect::V03 {
        value["kind"] = kind.into();
    }
    value
}

/// HTTP+JSON tells what it is by the name of the only field.
fn in_v03_named_field(dialect: A2aDialect, kind: &str, value: Value) -> Value {
    match (dialect, kind) {
        (A2aDialect::V03, _) => with_v03_kind(dialect, kind, value),
        (A2aDialect::V1 | A2aDialect::V03Rest, "task") => json!({ "task": value }),
        (A2aDialect::V1 | A2aDialect::V03Rest, "message") => json!({ "message": value }),
        (A2aDialect::V1 | A2aDialect::V03Rest, "status-update") => json!({ "statusUpdate": value }),
        (A2aDialect::V1 | A2aDialect::V03Rest, _) => json!({ "artifactUpdate": value }),
    }
}
