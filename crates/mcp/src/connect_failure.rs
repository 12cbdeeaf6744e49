//! Why a server could not be reached.

use rmcp::service::ClientInitializeError;

use super::server_env::ServerEnv;
use super::spec::Spec;

/// Why there is no connection.
pub(super) enum ConnectFailure {
    Start(String),
    Greeting(Box<ClientInitializeError>, String),
}

/// Why there is no connection, for others.
pub(super) enum OpenError {
    /// A person has to log in first.
    Locked,
    Failed(FailureReport),
}

/// Why a server does not work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureReport {
    /// In one line.
    pub reason: String,
    /// The last of what its program complained about.
    pub stderr: String,
    /// It seems to have missed the network.
    pub wants_network: bool,
}

impl From<String> for FailureReport {
    fn from(reason: String) -> Self {
        Self { reason, ..Self::default() }
    }
}

impl OpenError {
    /// Where somebody gave a token of their own a login would change nothing.
    pub(super) fn unauthorized(spec: &Spec) -> Self {
        match spec.is_authorized() {
            true => Self::Failed("the given authorization was refused".to_owned().into()),
            false => Self::Locked,
        }
    }
}

impl ConnectFailure {
    pub(super) fn into_open_error(self, spec: &Spec, server_env: &ServerEnv) -> OpenError {
        match &self {
            Self::Greeting(error, _) if error.is_authorization_required() => OpenError::unauthorized(spec),
            Self::Greeting(_, complaints) => {
                let stderr = server_env.redactor_for(spec).redact_text(complaints);
                let advice = server_env.network_advice(spec, complaints);
                let text = self.into_text(spec, server_env);
                let reason = advice.map_or_else(|| text.clone(), |advice| format!("{text} ({advice})"));
                OpenError::Failed(FailureReport { reason, stderr, wants_network: advice.is_some() })
            }
            Self::Start(_) => OpenError::Failed(self.into_text(spec, server_env).into()),
        }
    }

    fn into_text(self, spec: &Spec, server_env: &ServerEnv) -> String {
        let text = match self {
            Self::Start(reason) => format!("it could not be started: {reason}"),
            Self::Greeting(error, complaints) => {
                connection_error_with_last_line(&connection_error_text(&error), &complaints)
            }
        };
        server_env.redactor_for(spec).redact_text(&text)
    }
}

const EXITED: &str = "it exited during startup";

/// A program that dies is met either where we read or where we write.
fn connection_error_text(error: &ClientInitializeError) -> String {
    if let ClientInitializeError::TransportError { error, .. } = error {
        let ended = error.error.downcast_ref::<std::io::Error>().is_some();
        return if ended { EXITED.to_owned() } else { format!("it did not start: {}", error.error) };
    }
    let closed = matches!(error, ClientInitializeError::ConnectionClosed(_));
    if closed { EXITED.to_owned() } else { format!("it did not start: {error}") }
}

/// Programs say last what they died of.
pub(super) fn connection_error_with_last_line(what: &str, complaints: &str) -> String {
    match complaints.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{what}: {}", last.trim()),
        None => what.to_owned(),
    }
}
