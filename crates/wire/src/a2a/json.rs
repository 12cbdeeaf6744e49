//! Updates and answers as JSON, in the form of each dialect. Growing text is written by hand: there is much of it.

use serde_json::{Value, json};

use super::projection::TaskSubject;
use super::update::{TaskUpdate, TextChunk};
use super::v03_json;
use super::{A2aDialect, A2aTask, PushConfig, TaskPage};

/// How a stream's events are wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonEventFrame {
    dialect: A2aDialect,
    head: Vec<u8>,
    tail: &'static [u8],
    /// What stands before and after an artifact's id.
    chunk: [Vec<u8>; 2],
}

impl JsonEventFrame {
    /// Bare events, as HTTP+JSON sends them.
    pub fn unwrapped(dialect: A2aDialect, subject: &TaskSubject) -> Self {
        Self { dialect, head: Vec::new(), tail: b"", chunk: chunk_envelope(dialect, subject) }
    }

    /// Each event is the response to this JSON-RPC request.
    pub fn json_rpc_response(dialect: A2aDialect, subject: &TaskSubject, id: &Value) -> Self {
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").into_bytes();
        Self { dialect, head, tail: b"}", chunk: chunk_envelope(dialect, subject) }
    }

    /// Writes an update, and says whether there was anything to write.
    pub fn write_update(&self, update: &TaskUpdate<'_>, out: &mut Vec<u8>) -> bool {
        let value = match update {
            TaskUpdate::Said(_) => return false,
            TaskUpdate::Chunk(chunk) => {
                out.extend_from_slice(&self.head);
                self.write_chunk(chunk, out);
                out.extend_from_slice(self.tail);
                return true;
            }
            TaskUpdate::Begin(_) | TaskUpdate::Artifact(_) | TaskUpdate::Status(_) | TaskUpdate::Reply(_) => {
                a2a_stream_event_json(self.dialect, update)
            }
        };
        out.extend_from_slice(&self.head);
        write_a2a_json(&value, out);
        out.extend_from_slice(self.tail);
        true
    }

    fn write_chunk(&self, chunk: &TextChunk<'_>, out: &mut Vec<u8>) {
        let [before, after] = &self.chunk;
        out.extend_from_slice(before);
        out.extend_from_slice(chunk.artifact.to_string().as_bytes());
        out.extend_from_slice(after);
        write_a2a_json(&chunk.text, out);
        out.extend_from_slice(match (self.dialect, chunk.append) {
            (A2aDialect::V1 | A2aDialect::V03Rest, true) => b"}]},\"append\":true}}".as_slice(),
            (A2aDialect::V1 | A2aDialect::V03Rest, false) => b"}]}}}",
            (A2aDialect::V03, true) => b"}]},\"append\":true,\"lastChunk\":false}",
            (A2aDialect::V03, false) => b"}]},\"append\":false,\"lastChunk\":false}",
        });
    }
}

/// One event of a stream.
pub fn a2a_stream_event_json(dialect: A2aDialect, update: &TaskUpdate<'_>) -> Value {
    if dialect != A2aDialect::V1 {
        return v03_json::v03_event_json(dialect, update);
    }
    match update {
        TaskUpdate::Begin(task) => json!({ "task": task }),
        TaskUpdate::Status(update) => json!({ "statusUpdate": update }),
        TaskUpdate::Artifact(update) => json!({ "artifactUpdate": update }),
        TaskUpdate::Reply(message) | TaskUpdate::Said(message) => json!({ "message": message }),
        TaskUpdate::Chunk(chunk) => json!({ "artifactUpdate": { "artifact": {
            "artifactId": chunk.artifact, "parts": [{ "text": chunk.text }] }, "append": chunk.append } }),
    }
}

/// One event of a stream, with the names that growing text has only in its frame.
pub fn a2a_stream_event_json_with_ids(dialect: A2aDialect, subject: &TaskSubject, update: &TaskUpdate<'_>) -> Value {
    let mut value = a2a_stream_event_json(dialect, update);
    if let (TaskUpdate::Chunk(_), Some(inner)) = (update, value.get_mut("artifactUpdate")) {
        inner["taskId"] = subject.task.to_string().into();
        inner["contextId"] = subject.context.clone().into();
    }
    value
}

/// A task on its own.
pub fn a2a_task_json(dialect: A2aDialect, task: &A2aTask) -> Value {
    match dialect {
        A2aDialect::V1 => json!(task),
        A2aDialect::V03 | A2aDialect::V03Rest => v03_json::v03_task_json(dialect, task),
    }
}

/// A page of tasks. Only 1.0 has lists.
pub fn a2a_task_page_json(page: &TaskPage) -> Value {
    json!(page)
}

/// Where updates are sent.
pub fn a2a_push_config_json(dialect: A2aDialect, config: &PushConfig) -> Value {
    match dialect {
        A2aDialect::V1 => json!(config),
        A2aDialect::V03 | A2aDialect::V03Rest => v03_json::v03_push_config_json(dialect, config),
    }
}

/// All of these.
pub fn a2a_push_configs_json(dialect: A2aDialect, configs: &[PushConfig]) -> Value {
    let configs: Vec<Value> = configs.iter().map(|config| a2a_push_config_json(dialect, config)).collect();
    match dialect {
        A2aDialect::V1 => json!({ "configs": configs, "nextPageToken": "" }),
        A2aDialect::V03 => configs.into(),
        A2aDialect::V03Rest => json!({ "configs": configs }),
    }
}

fn chunk_envelope(dialect: A2aDialect, subject: &TaskSubject) -> [Vec<u8>; 2] {
    let mut before = match dialect {
        A2aDialect::V1 | A2aDialect::V03Rest => b"{\"artifactUpdate\":{\"taskId\":\"".to_vec(),
        A2aDialect::V03 => b"{\"kind\":\"artifact-update\",\"taskId\":\"".to_vec(),
    };
    before.extend_from_slice(subject.task.to_string().as_bytes());
    before.extend_from_slice(b"\",\"contextId\":");
    write_a2a_json(&subject.context, &mut before);
    before.extend_from_slice(b",\"artifact\":{\"artifactId\":\"");
    let after = match dialect {
        A2aDialect::V1 | A2aDialect::V03Rest => b"\",\"parts\":[{\"text\":".as_slice(),
        A2aDialect::V03 => b"\",\"parts\":[{\"kind\":\"text\",\"text\":",
    };
    [before, after.to_vec()]
}

fn write_a2a_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("what is written to memory has only text for keys");
}
