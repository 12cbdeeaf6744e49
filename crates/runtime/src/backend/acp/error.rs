//! Why an agent that speaks ACP cannot serve a run, in words that help.

use std::sync::Arc;

use gander_client::{CallError, LinkError, ProcessExit, StartError};
use gander_store::StoreError;
use serde_json::Value;

/// What an agent answers that wants a login first.
const AUTH_REQUIRED: i64 = -32000;

/// Why an agent cannot serve a run.
#[derive(Debug, thiserror::Error)]
pub enum AcpAgentError {
    /// It is not installed, or cannot be started.
    #[error("the agent {agent} cannot be started: {reason}")]
    Start { agent: String, reason: String },
    /// It wants a login first.
    #[error("the agent {agent} needs a login{}", acp_error_login_hint(.login.as_deref()))]
    LoginNeeded {
        agent: String,
        /// What starts one.
        login: Option<String>,
    },
    /// Its process ended.
    #[error("the agent {agent} ended: {exit}")]
    Crashed { agent: String, exit: Arc<ProcessExit> },
    /// There is no way to it.
    #[error("the agent {agent} cannot be reached: {reason}")]
    Unreachable { agent: String, reason: String },
    /// It refused.
    #[error("the agent {agent} refused: {message}")]
    Refused { agent: String, message: String },
    /// Our own store failed.
    #[error("the server's own store failed: {0}")]
    Store(#[from] StoreError),
}

impl AcpAgentError {
    /// A word for programs.
    pub fn reason_code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "agent_not_started",
            Self::LoginNeeded { .. } => "login_needed",
            Self::Crashed { .. } => "agent_crashed",
            Self::Unreachable { .. } => "agent_unreachable",
            Self::Refused { .. } => "agent_refused",
            Self::Store(_) => "internal",
        }
    }
}

/// Why a program was not started.
pub(super) fn acp_start_error(agent: &str, error: &StartError) -> AcpAgentError {
    let agent = agent.to_owned();
    match error {
        StartError::Died(exit) => AcpAgentError::Crashed { agent, exit: Arc::clone(exit) },
        StartError::Search(_) | StartError::Version(_) | StartError::Spawn { .. } | StartError::Hello(_) => {
            AcpAgentError::Start { agent, reason: error.to_string() }
        }
    }
}

/// Why a call failed.
pub(super) fn acp_call_error(agent: &str, login: Option<&str>, error: &CallError) -> AcpAgentError {
    let name = agent.to_owned();
    match error {
        CallError::Refused(refusal) if refusal.code == AUTH_REQUIRED => {
            AcpAgentError::LoginNeeded { agent: name, login: login.map(str::to_owned) }
        }
        CallError::Refused(refusal) => {
            // Some agents put what went wrong into `data`, as text or under `details`.
            let data = refusal.data.as_ref().and_then(|data| serde_json::to_value(data).ok());
            let detail = data.as_ref().and_then(|data| data.as_str().or_else(|| data["details"].as_str()));
            let message = match detail.filter(|detail| !refusal.message.contains(*detail)) {
                Some(detail) => format!("{}: {detail}", refusal.message),
                None => refusal.message.clone(),
            };
            AcpAgentError::Refused { agent: name, message }
        }
        CallError::Gone(link) => acp_link_error(agent, link),
        CallError::Late { .. } | CallError::Unreadable { .. } | CallError::Version(_) => {
            AcpAgentError::Unreachable { agent: name, reason: error.to_string() }
        }
    }
}

/// Why there is no way to an agent.
pub(super) fn acp_link_error(agent: &str, error: &LinkError) -> AcpAgentError {
    AcpAgentError::Unreachable { agent: agent.to_owned(), reason: error.to_string() }
}

fn acp_error_login_hint(login: Option<&str>) -> String {
    login.map(|command| format!(": run `{command}` in a terminal, then try again")).unwrap_or_default()
}

/// Whether these choices of an option, which may be in groups, include this value.
pub(super) fn acp_error_offers_value(options: &Value, value: &str) -> bool {
    match options {
        Value::Array(items) => items.iter().any(|item| acp_error_offers_value(item, value)),
        Value::Object(fields) => {
            fields.get("value").and_then(Value::as_str) == Some(value)
                || fields.get("options").is_some_and(|options| acp_error_offers_value(options, value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
