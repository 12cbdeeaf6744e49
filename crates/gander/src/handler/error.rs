//! Why a handler cannot go on.

use gander_domain::StopReason;

/// What a handler gives back: why its turn ended, or why it failed.
pub type PromptResult = Result<StopReason, HandlerError>;

/// Why a handler failed. Every client sees it, each in the form of its protocol.
///
/// `?` makes one from any error. It has no [`std::error::Error`] of its own, which is what lets `?` do that.
///
/// ```
/// use gander::HandlerError;
///
/// fn parse(text: &str) -> Result<u32, HandlerError> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("x").unwrap_err().message(), "invalid digit found in string");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    reason: String,
    message: String,
}

impl HandlerError {
    /// A failure: one lower-case word for programs and a sentence for people.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    /// A failure of the agent itself.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new("agent", message)
    }

    /// The prompt cannot be answered as it is: it is the client's fault.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new("invalid_input", message)
    }

    /// The word for programs.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self::failed(message)
    }
}

/// Why an update was not taken. A handler usually passes it on with `?`: nobody reads what it says from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// Somebody cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run is over, or the server is about to end.
    #[error("the run is over")]
    Ended,
    /// An artifact was not saved; the server's log says why.
    #[error("the artifact cannot be saved")]
    ArtifactRefused,
    /// A durable handler did something else than the first time it was called.
    #[error("the handler is durable and did not repeat what it did before")]
    Diverged,
}
