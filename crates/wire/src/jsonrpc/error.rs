//! What a JSON-RPC error object says.

use gander_domain::sanitize;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much of a foreign text an error message repeats.
const MAX_MESSAGE: usize = 160;

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Error {
    /// What sort of error.
    pub code: i64,
    /// One sentence for people.
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Value>>,
}

/// The error codes that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The text is not JSON.
    Parse,
    /// The JSON is not a message that can be handled now.
    InvalidRequest,
    /// Nobody here knows the method.
    MethodNotFound,
    /// The method does not take these parameters.
    InvalidParams,
    /// It was understood and went wrong.
    Internal,
    /// The agent wants to know who asks (ACP).
    AuthRequired,
    /// The session or resource does not exist (ACP).
    NotFound,
    /// No version of the protocol that the client speaks is spoken here (ACP version 2).
    UnsupportedVersion,
    /// The caller took the request back.
    Cancelled,
}

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::AuthRequired => -32000,
            Self::NotFound => -32002,
            Self::UnsupportedVersion => -32022,
            Self::Cancelled => -32800,
        }
    }
}

impl Error {
    /// An error without data. A message that quotes a peer is cut to a sensible length.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.number(),
            message: truncate_jsonrpc_error_text(sanitize::sanitized_text(&message.into())),
            data: None,
        }
    }

    /// The same error with data for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Nobody here knows the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Code::MethodNotFound, format!("method not found: {method}"))
    }

    /// The parameters do not fit.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParams, message)
    }

    /// True if it has this code.
    pub fn has_code(&self, code: Code) -> bool {
        self.code == code.number()
    }
}

fn truncate_jsonrpc_error_text(mut text: String) -> String {
    if text.len() > MAX_MESSAGE {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE));
        text.push('…');
    }
    text
}
