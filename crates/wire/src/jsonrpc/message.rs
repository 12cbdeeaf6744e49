//! One JSON-RPC message, read strictly: what it is, or why it is none.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::text_check;
use super::{Code, Error, RequestId};
use crate::json_check::JsonRefused;

/// What a text says before anybody knows whether it makes sense here.
#[derive(Debug)]
pub(super) enum JsonRpcMessage<'a> {
    Request {
        id: RequestId,
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Params<'a>,
    },
    Response {
        id: RequestId,
        result: Result<&'a RawValue, Error>,
    },
    /// An answer whose id nobody can have asked with.
    StrayResponse,
    /// An id and nothing else: a failed answer if we asked, else no message.
    Bare {
        id: RequestId,
    },
}

/// Why a text is no message, and whom to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// The id that it came with, if that is one.
    pub id: Option<RequestId>,
    pub error: Error,
}

/// The parameters of a request or notification, not yet read.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a>(Option<&'a RawValue>);

impl<'a> Params<'a> {
    /// Reads them as a struct. Absent parameters are an empty object.
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, Error> {
        let json = self.object()?;
        serde_json::from_str(json).map_err(|error| Error::invalid_params(format!("invalid params: {error}")))
    }

    /// All of them. Absent parameters are an empty object.
    pub fn value(self) -> Result<Value, Error> {
        self.parse::<Map<String, Value>>().map(Value::Object)
    }

    /// Their JSON, if it is an object.
    pub fn object(self) -> Result<&'a str, Error> {
        match self.0.map(RawValue::get) {
            None | Some("null") => Ok("{}"),
            Some(json) if json.starts_with('{') => Ok(json),
            Some(_) => Err(Error::invalid_params("params must be an object")),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_present")]
    error: Option<&'a RawValue>,
}

/// Reads one message.
pub(super) fn parse_message(bytes: &[u8]) -> Result<JsonRpcMessage<'_>, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::not_json("not UTF-8"))?;
    text_check::check_jsonrpc_text(text).map_err(|fault| Malformed::not_json(&fault.to_string()))?;
    if let Err(fault @ JsonRefused::Duplicate(_)) = crate::json_check::check_json(bytes) {
        let id = serde_json::from_str::<Envelope<'_>>(text).ok().and_then(|envelope| RequestId::parse(envelope.id?));
        return Err(Malformed::invalid(id, &fault.to_string()));
    }
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| Malformed::not_json(&error.to_string()))?;
    match whole.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => return Err(Malformed::invalid(None, "batches are not supported")),
        _ => return Err(Malformed::invalid(None, "a message must be an object")),
    }
    let envelope = serde_json::from_str(whole.get()).map_err(|error| Malformed::invalid(None, &error.to_string()))?;
    classify_envelope(&envelope)
}

fn classify_envelope<'a>(envelope: &Envelope<'a>) -> Result<JsonRpcMessage<'a>, Malformed> {
    let id = envelope.id.and_then(RequestId::parse);
    if envelope.jsonrpc.is_some_and(|version| version.get() != r#""2.0""#) {
        return Err(Malformed::invalid(id, "jsonrpc must be \"2.0\""));
    }
    let Some(method) = envelope.method else { return read_response_message(envelope, id) };
    if envelope.result.is_some() || envelope.error.is_some() {
        return Err(Malformed::invalid(id, "a message asks or answers, never both"));
    }
    let method: Cow<'a, str> = match serde_json::from_str::<Text<'a>>(method.get()) {
        Ok(Text(method)) if !method.is_empty() => method,
        Ok(_) | Err(_) => return Err(Malformed::invalid(id, "method must be a name")),
    };
    let params = Params(envelope.params);
    match (envelope.id, id) {
        (None, _) => Ok(JsonRpcMessage::Notification { method, params }),
        (Some(_), Some(id)) => Ok(JsonRpcMessage::Request { id, method, params }),
        (Some(_), None) => {
            Err(Malformed::invalid(None, "id must be a 64-bit integer or a string of at most 256 bytes"))
        }
    }
}

fn read_response_message<'a>(envelope: &Envelope<'a>, id: Option<RequestId>) -> Result<JsonRpcMessage<'a>, Malformed> {
    match (envelope.result, envelope.error, id) {
        (None, None, None) => Err(Malformed::invalid(None, "neither method, result nor error")),
        (None, None, Some(id)) => Ok(JsonRpcMessage::Bare { id }),
        (_, _, None) => Ok(JsonRpcMessage::StrayResponse),
        (Some(result), None, Some(id)) => Ok(JsonRpcMessage::Response { id, result: Ok(result) }),
        (_, Some(error), Some(id)) => Ok(JsonRpcMessage::Response { id, result: Err(read_error_message(error)) }),
    }
}

/// An error that cannot be read is still an error.
fn read_error_message(error: &RawValue) -> Error {
    serde_json::from_str(error.get())
        .unwrap_or_else(|_| Error::new(Code::Internal, "peer answered with a malformed error"))
}

impl Malformed {
    /// It was too large to be read.
    pub fn too_large() -> Self {
        Self::invalid(None, "message too large")
    }

    pub(super) fn invalid(id: Option<RequestId>, why: &str) -> Self {
        Self { id, error: Error::new(Code::InvalidRequest, format!("invalid request: {why}")) }
    }

    fn not_json(why: &str) -> Self {
        Self { id: None, error: Error::new(Code::Parse, format!("parse error: {why}")) }
    }
}

/// A string that borrows where it can.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Tells `null` from absent.
fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
