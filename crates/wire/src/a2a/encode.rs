//! Updates and answers as JSON, in the form of each dialect. Growing text is written by hand: there is much of it.

use serde_json::{Value, json};

use super::output::Subject;
use super::update::{Chunk, Update};
use super::v03;
use super::{Dialect, PushConfig, Task, TaskPage};

/// How a stream's events are wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    dialect: Dialect,
    head: Vec<u8>,
    tail: &'static [u8],
    /// What stands before and after an artifact's id.
    chunk: [Vec<u8>; 2],
}

impl Frame {
    /// Bare events, as HTTP+JSON sends them.
    pub fn bare(dialect: Dialect, subject: &Subject) -> Self {
        Self { dialect, head: Vec::new(), tail: b"", chunk: chunk_pieces(dialect, subject) }
    }

    /// Each event is the response to this JSON-RPC request.
    pub fn response(dialect: Dialect, subject: &Subject, id: &Value) -> Self {
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").into_bytes();
        Self { dialect, head, tail: b"}", chunk: chunk_pieces(dialect, subject) }
    }

    /// Writes an update, and says whether there was anything to write.
    pub fn write(&self, update: &Update<'_>, out: &mut Vec<u8>) -> bool {
        let value = match update {
            Update::Said(_) => return false,
            Update::Chunk(chunk) => {
                out.extend_from_slice(&self.head);
                self.chunk(chunk, out);
                out.extend_from_slice(self.tail);
                return true;
            }
            Update::Begin(_) | Update::Artifact(_) | Update::Status(_) | Update::Reply(_) => {
                event(self.dialect, update)
            }
        };
        out.extend_from_slice(&self.head);
        json(&value, out);
        out.extend_from_slice(self.tail);
        true
    }

    fn chunk(&self, chunk: &Chunk<'_>, out: &mut Vec<u8>) {
        let [before, after] = &self.chunk;
        out.extend_from_slice(before);
        out.extend_from_slice(chunk.artifact.to_string().as_bytes());
        out.extend_from_slice(after);
        json(&chunk.text, out);
        out.extend_from_slice(match (self.dialect, chunk.append) {
            (Dialect::V1 | Dialect::V03Rest, true) => b"}]},\"append\":true}}".as_slice(),
            (Dialect::V1 | Dialect::V03Rest, false) => b"}]}}}",
            (Dialect::V03, true) => b"}]},\"append\":true,\"lastChunk\":false}",
            (Dialect::V03, false) => b"}]},\"append\":false,\"lastChunk\":false}",
        });
    }
}

/// One event of a stream.
pub fn event(dialect: Dialect, update: &Update<'_>) -> Value {
    if dialect != Dialect::V1 {
        return v03::event(dialect, update);
    }
    match update {
        Update::Begin(task) => json!({ "task": task }),
        Update::Status(update) => json!({ "statusUpdate": update }),
        Update::Artifact(update) => json!({ "artifactUpdate": update }),
        Update::Reply(message) | Update::Said(message) => json!({ "message": message }),
        Update::Chunk(chunk) => json!({ "artifactUpdate": { "artifact": {
            "artifactId": chunk.artifact, "parts": [{ "text": chunk.text }] }, "append": chunk.append } }),
    }
}

/// One event of a stream, with the names that growing text has only in its frame.
pub fn update(dialect: Dialect, subject: &Subject, update: &Update<'_>) -> Value {
    let mut value = event(dialect, update);
    if let (Update::Chunk(_), Some(inner)) = (update, value.get_mut("artifactUpdate")) {
        inner["taskId"] = subject.task.to_string().into();
        inner["contextId"] = subject.context.clone().into();
    }
    value
}

/// A task on its own.
pub fn task(dialect: Dialect, task: &Task) -> Value {
    match dialect {
        Dialect::V1 => json!(task),
        Dialect::V03 | Dialect::V03Rest => v03::task(dialect, task),
    }
}

/// A page of tasks. Only 1.0 has lists.
pub fn page(page: &TaskPage) -> Value {
    json!(page)
}

/// Where updates are sent.
pub fn push(dialect: Dialect, config: &PushConfig) -> Value {
    match dialect {
        Dialect::V1 => json!(config),
        Dialect::V03 | Dialect::V03Rest => v03::push(dialect, config),
    }
}

/// All of these.
pub fn pushes(dialect: Dialect, configs: &[PushConfig]) -> Value {
    let configs: Vec<Value> = configs.iter().map(|config| push(dialect, config)).collect();
    match dialect {
        Dialect::V1 => json!({ "configs": configs, "nextPageToken": "" }),
        Dialect::V03 => configs.into(),
        Dialect::V03Rest => json!({ "configs": configs }),
    }
}

fn chunk_pieces(dialect: Dialect, subject: &Subject) -> [Vec<u8>; 2] {
    let mut before = match dialect {
        Dialect::V1 | Dialect::V03Rest => b"{\"artifactUpdate\":{\"taskId\":\"".to_vec(),
        Dialect::V03 => b"{\"kind\":\"artifact-update\",\"taskId\":\"".to_vec(),
    };
    before.extend_from_slice(subject.task.to_string().as_bytes());
    before.extend_from_slice(b"\",\"contextId\":");
    json(&subject.context, &mut before);
    before.extend_from_slice(b",\"artifact\":{\"artifactId\":\"");
    let after = match dialect {
        Dialect::V1 | Dialect::V03Rest => b"\",\"parts\":[{\"text\":".as_slice(),
        Dialect::V03 => b"\",\"parts\":[{\"kind\":\"text\",\"text\":",
    };
    [before, after.to_vec()]
}

fn json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("what is written to memory has only text for keys");
}
