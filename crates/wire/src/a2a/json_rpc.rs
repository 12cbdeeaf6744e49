//! The JSON-RPC envelope: one request in, one response out. Batches are refused.

use serde_json::{Map, Value, json};

use super::error::{A2aError, A2aErrorKind};
use super::object_reader::MAX_ID_LEN;
use super::requests::{self, A2aMethod};
use super::{A2aDialect, A2aRequest};

/// A request with its envelope taken off.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRequest {
    /// What the response repeats.
    pub id: Value,
    /// Whose names were used.
    pub dialect: A2aDialect,
    /// What is asked.
    pub method: A2aMethod,
    /// With what.
    pub params: Map<String, Value>,
}

/// Why a request is refused, and what its response repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcRefusal {
    /// What the response repeats.
    pub id: Value,
    /// In whose form.
    pub dialect: A2aDialect,
    pub error: A2aError,
}

impl RpcRequest {
    /// Opens a request. `version` is what the client says it speaks.
    pub fn parse(body: &[u8], version: &str) -> Result<Self, Box<RpcRefusal>> {
        let spoken = A2aDialect::from_version(version).unwrap_or(A2aDialect::V1);
        let refusal = |id: Value, error: A2aError| Box::new(RpcRefusal { id, dialect: spoken, error });
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| refusal(Value::Null, A2aError::new(A2aErrorKind::Parse, format!("not JSON: {error}"))))?;
        let Value::Object(mut object) = value else {
            return Err(refusal(
                Value::Null,
                invalid_json_rpc_request("a request is one object, batches are not taken"),
            ));
        };
        let (id, method) = take_json_rpc_head(&mut object).map_err(|codes| refusal(codes.0, codes.1))?;
        let Some((method, dialect)) = A2aMethod::from_name(&method) else {
            return Err(refusal(id, requests::a2a_method_not_found(&method)));
        };
        let params = match object.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(refusal(id, A2aError::invalid_field("params", "must be an object"))),
        };
        let envelope = Self { id, dialect, method, params };
        envelope.check_version(version)
    }

    /// What is asked, understood.
    pub fn into_request(self) -> Result<(Value, A2aDialect, A2aRequest), Box<RpcRefusal>> {
        let Self { id, dialect, method, params } = self;
        match A2aRequest::from_params(method, dialect, params) {
            Ok(request) => Ok((id, dialect, request)),
            Err(error) => Err(Box::new(RpcRefusal { id, dialect, error })),
        }
    }

    /// A method of 1.0 needs a client that says 1.0: silence means 0.3.
    fn check_version(self, version: &str) -> Result<Self, Box<RpcRefusal>> {
        let agreed = match A2aDialect::from_version(version) {
            Some(A2aDialect::V1) => self.dialect == A2aDialect::V1 || !version.is_empty(),
            Some(A2aDialect::V03 | A2aDialect::V03Rest) => self.dialect == A2aDialect::V03,
            None => false,
        };
        if agreed {
            return Ok(self);
        }
        let error = unsupported_json_rpc_version(version);
        Err(Box::new(RpcRefusal { id: self.id, dialect: self.dialect, error }))
    }
}

impl RpcRefusal {
    /// The response.
    pub fn response(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error.json_rpc_error(self.dialect) })
    }
}

/// The response that tells the result.
pub fn json_rpc_result_response(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A version that is not spoken here.
pub fn unsupported_json_rpc_version(version: &str) -> A2aError {
    let version = if version.trim().is_empty() { "none, which means 0.3" } else { version };
    let message = format!("send `A2A-Version: 1.0`, or use /a2a/v1 for 0.3; the version sent here: {version}");
    A2aError::new(A2aErrorKind::VersionNotSupported, message)
}

fn take_json_rpc_head(object: &mut Map<String, Value>) -> Result<(Value, String), Box<(Value, A2aError)>> {
    let id = match object.remove("id") {
        None => Value::Null,
        Some(Value::Null) => return Err(Box::new((Value::Null, invalid_json_rpc_request("an id is not null")))),
        Some(Value::String(id)) if id.len() > MAX_ID_LEN => {
            return Err(Box::new((Value::Null, invalid_json_rpc_request("an id has at most 256 bytes"))));
        }
        Some(id @ Value::String(_)) => id,
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Value::Number(number),
        Some(_) => return Err(Box::new((Value::Null, invalid_json_rpc_request("an id is a string or an integer")))),
    };
    match object.remove("jsonrpc") {
        None => {}
        Some(Value::String(version)) if version == "2.0" => {}
        Some(_) => return Err(Box::new((id, invalid_json_rpc_request("only JSON-RPC 2.0 is spoken")))),
    }
    // It could be a request or a response: whoever reads it as the other would do something else.
    if object.contains_key("result") || object.contains_key("error") {
        return Err(Box::new((id, invalid_json_rpc_request("a request has neither result nor error"))));
    }
    match object.remove("method") {
        Some(Value::String(method)) => Ok((id, method)),
        Some(_) | None => Err(Box::new((id, invalid_json_rpc_request("a request names a method")))),
    }
}

fn invalid_json_rpc_request(message: &str) -> A2aError {
    A2aError::new(A2aErrorKind::InvalidRequest, message)
}
