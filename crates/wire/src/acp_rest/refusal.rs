//! Errors as this protocol tells them. Its clients know three codes and throw on any other.

use gander_domain::sanitize;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An error, of a request or of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcpRestError {
    /// What kind.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Something went wrong, or is not to be had now.
    ServerError,
    /// The request is wrong.
    InvalidInput,
    /// What it names is not there.
    NotFound,
}

impl AcpRestError {
    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidInput, message: sanitize::sanitized_text(&message.into()), data: None }
    }

    /// What it names is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::NotFound, message: sanitize::sanitized_text(&message.into()), data: None }
    }

    /// Something is not to be had now.
    pub fn server_error(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::ServerError, message: sanitize::sanitized_text(&message.into()), data: None }
    }

    /// With a reason for programs.
    #[must_use]
    pub fn with_reason(mut self, reason: &str) -> Self {
        self.data = Some(serde_json::json!({ "reason": reason }));
        self
    }
}

/// A request that is not carried out, and the HTTP status that says so.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpRestRefusal {
    /// The status.
    pub status: u16,
    /// What the client is told.
    pub error: AcpRestError,
}

impl AcpRestRefusal {
    /// The request cannot be understood.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self { status: 422, error: AcpRestError::invalid(message) }
    }

    /// What it names is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { status: 404, error: AcpRestError::not_found(message) }
    }

    /// Two of its ids are meant to be one.
    pub fn ids_disagree(message: impl Into<String>) -> Self {
        Self { status: 400, error: AcpRestError::invalid(message) }
    }

    /// Its run id stands for another request.
    pub fn run_id_reused(message: impl Into<String>) -> Self {
        Self { status: 409, error: AcpRestError::invalid(message).with_reason("run_id_reused") }
    }

    /// Not in this state.
    pub fn wrong_state(message: impl Into<String>) -> Self {
        Self { status: 403, error: AcpRestError::invalid(message) }
    }
}

impl From<AcpRestError> for AcpRestRefusal {
    fn from(error: AcpRestError) -> Self {
        Self { status: 422, error }
    }
}
