//! What went wrong, in the form of each binding.

use gander_domain::sanitize;
use serde_json::{Value, json};

use super::A2aDialect;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// What sort of thing.
    pub kind: A2aErrorKind,
    /// One sentence for people.
    pub message: String,
    /// Which fields are wrong.
    pub violations: Vec<FieldViolation>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    pub field: String,
    pub description: String,
}

/// What sort of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum A2aErrorKind {
    /// No such task for this caller.
    TaskNotFound,
    /// It is over.
    TaskNotCancelable,
    /// Nothing is pushed here.
    PushNotificationNotSupported,
    /// Not in this state, or not at all.
    UnsupportedOperation,
    /// The agent cannot read that.
    ContentTypeNotSupported,
    /// The agent said something impossible.
    InvalidAgentResponse,
    /// There is no second card.
    ExtendedAgentCardNotConfigured,
    /// The client must know an extension first.
    ExtensionSupportRequired,
    /// Another version is spoken here.
    VersionNotSupported,
    /// Not JSON.
    Parse,
    /// JSON, but no request.
    InvalidRequest,
    /// Nobody knows the method.
    MethodNotFound,
    /// The parameters do not fit.
    InvalidParams,
    /// The caller lacks the authority.
    Forbidden,
    /// It went wrong inside.
    Internal,
    /// Too much waits already.
    TooMany,
    /// Not now.
    Unavailable,
    /// The log does not have the place from which on something is wanted.
    Truncated,
}

/// The faces of one kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCodes {
    /// JSON-RPC.
    pub code: i64,
    /// HTTP.
    pub http: u16,
    /// gRPC.
    pub grpc: u8,
    /// The gRPC status by name.
    pub status: &'static str,
    /// The reason in `ErrorInfo`.
    pub reason: &'static str,
}

impl A2aErrorKind {
    /// Its faces.
    pub const fn codes(self) -> ErrorCodes {
        const fn error_codes(code: i64, http: u16, grpc: u8, status: &'static str, reason: &'static str) -> ErrorCodes {
            ErrorCodes { code, http, grpc, status, reason }
        }
        match self {
            Self::TaskNotFound => error_codes(-32001, 404, 5, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => error_codes(-32002, 400, 9, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => {
                error_codes(-32003, 400, 9, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
            }
            Self::UnsupportedOperation => error_codes(-32004, 400, 9, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => {
                error_codes(-32005, 400, 3, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
            }
            Self::InvalidAgentResponse => error_codes(-32006, 500, 13, "INTERNAL", "INVALID_AGENT_RESPONSE"),
            Self::ExtendedAgentCardNotConfigured => {
                error_codes(-32007, 400, 9, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            }
            Self::ExtensionSupportRequired => {
                error_codes(-32008, 400, 9, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED")
            }
            // 1.0.1 says FAILED_PRECONDITION over gRPC, 1.0.0 and the official kit say UNIMPLEMENTED.
            Self::VersionNotSupported => error_codes(-32009, 400, 12, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            Self::Parse => error_codes(-32700, 400, 3, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::InvalidRequest => error_codes(-32600, 400, 3, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::MethodNotFound => error_codes(-32601, 404, 12, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
            Self::InvalidParams => error_codes(-32602, 400, 3, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            // The specification has no code for it; over HTTP and gRPC it has the transport's own.
            Self::Forbidden => error_codes(-32004, 403, 7, "PERMISSION_DENIED", "PERMISSION_DENIED"),
            Self::Internal => error_codes(-32603, 500, 13, "INTERNAL", "INTERNAL_ERROR"),
            Self::TooMany => error_codes(-32603, 429, 8, "RESOURCE_EXHAUSTED", "TOO_MANY_REQUESTS"),
            Self::Unavailable => error_codes(-32603, 503, 14, "UNAVAILABLE", "UNAVAILABLE"),
            Self::Truncated => error_codes(-32004, 409, 10, "ABORTED", "LOG_TRUNCATED"),
        }
    }
}

impl A2aError {
    /// An error about no field.
    pub fn new(kind: A2aErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: sanitize::sanitized_text(&message.into()), violations: Vec::new() }
    }

    /// These fields are wrong.
    pub fn invalid_fields(mut violations: Vec<FieldViolation>) -> Self {
        for FieldViolation { field, description } in &mut violations {
            (*field, *description) = (sanitize::sanitized_text(field), sanitize::sanitized_text(description));
        }
        let message = match violations.as_slice() {
            [only] => format!("invalid parameters: {}: {}", only.field, only.description),
            _ => "invalid parameters".to_owned(),
        };
        Self { kind: A2aErrorKind::InvalidParams, message, violations }
    }

    /// One field is wrong.
    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldViolation { field: field.into(), description: description.into() }])
    }

    /// No such task for this caller.
    pub fn no_such_task(id: &str) -> Self {
        Self::new(A2aErrorKind::TaskNotFound, format!("task not found: {id}"))
    }

    /// The `error` of a JSON-RPC response. 0.3 knows fewer codes.
    pub fn json_rpc_error(&self, dialect: A2aDialect) -> Value {
        let codes = self.kind.codes();
        match dialect {
            A2aDialect::V1 => json!({ "code": codes.code, "message": self.message, "data": self.error_details() }),
            A2aDialect::V03 | A2aDialect::V03Rest => {
                let known = !matches!(codes.code, -32099..=-32008);
                let code = if known { codes.code } else { A2aErrorKind::Internal.codes().code };
                json!({ "code": code, "message": self.message, "data": null })
            }
        }
    }

    /// The body of an HTTP+JSON answer.
    pub fn rest_body(&self) -> Value {
        let codes = self.kind.codes();
        json!({ "error": {
            "code": codes.http,
            "status": codes.status,
            "message": self.message,
            "details": self.error_details(),
        }})
    }

    fn error_details(&self) -> Value {
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.codes().reason,
            "domain": "a2a-protocol.org",
            "metadata": {},
        });
        if self.violations.is_empty() {
            return json!([info]);
        }
        let violations: Vec<Value> = self
            .violations
            .iter()
            .map(|violation| json!({ "field": violation.field, "description": violation.description }))
            .collect();
        json!([info, { "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations }])
    }
}
