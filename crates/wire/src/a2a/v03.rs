//! What 1.0 calls by other names than 0.3 did: the way out.

use serde_json::{Map, Value, json};

use super::update::Update;
use super::{Artifact, Content, Dialect, Message, Part, PushConfig, Role, Task, TaskStatus};

/// One event of a stream.
pub(super) fn event(dialect: Dialect, update: &Update<'_>) -> Value {
    match update {
        Update::Begin(begun) => wrapped(dialect, "task", task(dialect, begun)),
        Update::Reply(said) | Update::Said(said) => wrapped(dialect, "message", message(dialect, said)),
        Update::Status(update) => {
            let mut event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": status(dialect, &update.status),
                "final": update.status.state.is_terminal() || update.status.state.is_interrupted(),
            });
            with_metadata(&mut event, update.metadata.as_ref());
            wrapped(dialect, "status-update", event)
        }
        Update::Artifact(update) => {
            let event = json!({
                "taskId": update.task_id,
                "contextId": update.context_id,
                "artifact": artifact(dialect, &update.artifact),
                "append": update.append,
                "lastChunk": update.last_chunk,
            });
            wrapped(dialect, "artifact-update", event)
        }
        Update::Chunk(chunk) => {
            let part = part(dialect, &Part::text(chunk.text.as_ref()));
            let artifact = json!({ "artifactId": chunk.artifact, "parts": [part] });
            wrapped(dialect, "artifact-update", json!({ "artifact": artifact, "append": chunk.append }))
        }
    }
}

/// A task.
pub(super) fn task(dialect: Dialect, task: &Task) -> Value {
    let mut value = json!({
        "id": task.id,
        "contextId": task.context_id,
        "status": status(dialect, &task.status),
    });
    if !task.artifacts.is_empty() {
        value["artifacts"] = task.artifacts.iter().map(|made| artifact(dialect, made)).collect();
    }
    if !task.history.is_empty() {
        value["history"] = task.history.iter().map(|said| message(dialect, said)).collect();
    }
    with_metadata(&mut value, task.metadata.as_ref());
    kinded(dialect, "task", value)
}

/// A message.
pub fn message(dialect: Dialect, message: &Message) -> Value {
    let role = match (dialect, message.role) {
        (Dialect::V03, Role::User) => "user",
        (Dialect::V03, Role::Agent) => "agent",
        (Dialect::V1 | Dialect::V03Rest, Role::User) => "ROLE_USER",
        (Dialect::V1 | Dialect::V03Rest, Role::Agent) => "ROLE_AGENT",
    };
    let parts: Value = message.parts.iter().map(|said| part(dialect, said)).collect();
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
    kinded(dialect, "message", value)
}

/// Where updates are sent.
pub(super) fn push(dialect: Dialect, config: &PushConfig) -> Value {
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

fn status(dialect: Dialect, status: &TaskStatus) -> Value {
    let state = match dialect {
        Dialect::V03 => json!(status.state.name()),
        // The protobuf of 0.3 spells this one with two l.
        Dialect::V1 | Dialect::V03Rest if status.state == super::TaskState::Canceled => json!("TASK_STATE_CANCELLED"),
        Dialect::V1 | Dialect::V03Rest => json!(status.state),
    };
    let mut value = json!({ "state": state, "timestamp": status.timestamp });
    if let Some(said) = &status.message {
        value["message"] = message(dialect, said);
    }
    value
}

fn artifact(dialect: Dialect, artifact: &Artifact) -> Value {
    let parts: Value = artifact.parts.iter().map(|made| part(dialect, made)).collect();
    let mut value = json!({ "artifactId": artifact.artifact_id, "parts": parts });
    if let Some(name) = &artifact.name {
        value["name"] = name.clone().into();
    }
    value
}

fn part(dialect: Dialect, part: &Part) -> Value {
    let mut value = match (dialect, &part.content) {
        (Dialect::V03, Content::Text(text)) => json!({ "kind": "text", "text": text }),
        (Dialect::V03, Content::Data(data)) => json!({ "kind": "data", "data": object(data) }),
        (Dialect::V03, Content::Raw(bytes)) => json!({ "kind": "file", "file": file("bytes", bytes, part) }),
        (Dialect::V03, Content::Url(uri)) => json!({ "kind": "file", "file": file("uri", uri, part) }),
        (Dialect::V1 | Dialect::V03Rest, Content::Text(text)) => json!({ "text": text }),
        (Dialect::V1 | Dialect::V03Rest, Content::Data(data)) => json!({ "data": { "data": object(data) } }),
        (Dialect::V1 | Dialect::V03Rest, Content::Raw(bytes)) => json!({ "file": file("fileWithBytes", bytes, part) }),
        (Dialect::V1 | Dialect::V03Rest, Content::Url(uri)) => json!({ "file": file("fileWithUri", uri, part) }),
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
fn file(name: &str, content: &str, part: &Part) -> Value {
    let mut file = json!({ name: content });
    if let Some(mime) = &part.media_type {
        file["mimeType"] = mime.clone().into();
    }
    file
}

/// In 0.3 data is always an object.
fn object(data: &Value) -> Value {
    if data.is_object() { data.clone() } else { json!({ "value": data }) }
}

fn with_metadata(value: &mut Value, metadata: Option<&Map<String, Value>>) {
    if let Some(metadata) = metadata {
        value["metadata"] = metadata.clone().into();
    }
}

/// JSON-RPC tells what it is by `kind`.
fn kinded(dialect: Dialect, kind: &str, mut value: Value) -> Value {
    if dialect == Dialect::V03 {
        value["kind"] = kind.into();
    }
    value
}

/// HTTP+JSON tells what it is by the name of the only field.
fn wrapped(dialect: Dialect, kind: &str, value: Value) -> Value {
    match (dialect, kind) {
        (Dialect::V03, _) => kinded(dialect, kind, value),
        (Dialect::V1 | Dialect::V03Rest, "task") => json!({ "task": value }),
        (Dialect::V1 | Dialect::V03Rest, "message") => json!({ "message": value }),
        (Dialect::V1 | Dialect::V03Rest, "status-update") => json!({ "statusUpdate": value }),
        (Dialect::V1 | Dialect::V03Rest, _) => json!({ "artifactUpdate": value }),
    }
}
