//! Protobuf from JSON and back: the gRPC binding says the same as the others, in other bytes.
//!
//! The JSON of A2A 1.0 is that of its protobuf messages, so a table of names and numbers is all that is needed.

mod read;
pub mod table;
mod write;

pub use read::read_protobuf;
pub use write::write_protobuf;

/// A message: its fields.
#[derive(Debug)]
pub struct MessageType(pub &'static [MessageField]);

/// A field of a message.
#[derive(Debug)]
pub struct MessageField {
    /// Its name in JSON.
    pub name: &'static str,
    /// Its number in protobuf.
    pub number: u32,
    /// What it holds.
    pub kind: FieldKind,
    /// How often.
    pub count: FieldCount,
}

/// What a field holds.
#[derive(Debug)]
pub enum FieldKind {
    /// Words.
    Text,
    /// Bytes; base64 in JSON.
    Bytes,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// One of these names; their numbers begin with 0.
    Name(&'static [&'static str]),
    /// A message.
    Message(&'static MessageType),
    /// Any JSON.
    Value,
    /// Any JSON object.
    Struct,
    /// A time; RFC 3339 in JSON.
    Time,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldCount {
    /// At most once.
    One,
    /// A list.
    Many,
    /// An object whose values are these.
    Map,
}

/// The bytes are not such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a protobuf message of this type")]
pub struct MalformedProtobuf;

/// How values stand in the bytes.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Map, Value, json};

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(object) = value else { panic!("not an object") };
        object
    }

    #[test]
    fn a_task_survives_the_way_there_and_back() {
        let task = json!({ "task": {
            "id": "t", "contextId": "c",
            "status": { "state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2026-01-31T12:00:00.000001Z",
                "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "ä?" }] } },
            "artifacts": [{ "artifactId": "a", "parts": [
                { "raw": "aGk=", "filename": "f", "mediaType": "text/plain" },
                { "data": { "n": 1.5, "list": [true, null, "x"], "o": {} } } ] }],
            "metadata": { "k": -3 },
        }});
        let bytes = write_protobuf(&table::STREAM_RESPONSE, &task);
        assert_eq!(Value::Object(read_protobuf(&table::STREAM_RESPONSE, &bytes).unwrap()), task);
    }

    #[test]
    fn requests_are_read_as_the_other_bindings_read_them() {
        let request = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] },
            "configuration": { "historyLength": 0, "returnImmediately": true } });
        let bytes = write_protobuf(&table::SEND_MESSAGE_REQUEST, &request);
        assert_eq!(read_protobuf(&table::SEND_MESSAGE_REQUEST, &bytes).unwrap(), object(request));
        // known bytes: field 2 of GetTaskRequest is its id, field 9 nobody knows
        let bytes = [0x12, 0x01, b'x', 0x48, 0x96, 0x01];
        assert_eq!(read_protobuf(&table::GET_TASK_REQUEST, &bytes).unwrap(), object(json!({ "id": "x" })));
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_refused() {
        let bytes = write_protobuf(&table::GET_TASK_REQUEST, &json!({ "id": "abc" }));
        for cut in 1..bytes.len() {
            assert_eq!(read_protobuf(&table::GET_TASK_REQUEST, &bytes[..cut]), Err(MalformedProtobuf), "{cut}");
        }
        assert_eq!(read_protobuf(&table::GET_TASK_REQUEST, &[0x12, 0x01, 0xff]), Err(MalformedProtobuf));
        assert_eq!(read_protobuf(&table::GET_TASK_REQUEST, &[0xff; 11]), Err(MalformedProtobuf));
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let bytes = write_protobuf(&table::STREAM_RESPONSE, &json!({ "message": { "parts": [{ "data": deep }] } }));
        assert_eq!(read_protobuf(&table::STREAM_RESPONSE, &bytes), Err(MalformedProtobuf));
    }

    #[test]
    fn maps_keep_their_names() {
        let card = json!({ "securitySchemes": { "token": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } },
            "capabilities": { "streaming": true } });
        let bytes = write_protobuf(&table::AGENT_CARD, &card);
        assert_eq!(read_protobuf(&table::AGENT_CARD, &bytes).unwrap()["securitySchemes"], card["securitySchemes"]);
    }
}
