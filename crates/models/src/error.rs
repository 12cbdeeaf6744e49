//! Why a model call failed, as the caller has to tell reasons apart.

use std::time::Duration;

/// Why a model call failed. Each text is a whole message that names the provider; none holds a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key is missing, wrong, or may not do this.
    #[error("{0}")]
    Unauthorized(String),
    /// The account has no credit left.
    #[error("{0}")]
    NoCredit(String),
    /// Too many requests or tokens in a span of time.
    #[error("{message}")]
    RateLimited {
        /// The message.
        message: String,
        /// How long the provider wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The provider has trouble of its own.
    #[error("{message}")]
    Overloaded {
        /// The message.
        message: String,
        /// How long the provider wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The conversation does not fit into the model's window.
    #[error("{0}")]
    ContextTooLong(String),
    /// The provider does not know the model or the address.
    #[error("{0}")]
    NotFound(String),
    /// The provider did not understand or accept the request.
    #[error("{0}")]
    BadRequest(String),
    /// A content policy refused the request.
    #[error("{0}")]
    Refused(String),
    /// The provider could not be reached, or the connection broke.
    #[error("{0}")]
    Network(String),
    /// No answer began in time.
    #[error("{0}")]
    TimedOut(String),
    /// An answer began and then nothing came for too long.
    #[error("{0}")]
    Idle(String),
    /// What came is not what the wire prescribes.
    #[error("{0}")]
    BadStream(String),
    /// The model wrote arguments for a tool that are not JSON.
    #[error("{0}")]
    BadArguments(String),
}

impl ModelError {
    /// True if the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Network(_)
            | Self::TimedOut(_)
            | Self::Idle(_)
            | Self::BadStream(_)
            | Self::BadArguments(_) => true,
            Self::Unauthorized(_)
            | Self::NoCredit(_)
            | Self::ContextTooLong(_)
            | Self::NotFound(_)
            | Self::BadRequest(_)
            | Self::Refused(_) => false,
        }
    }

    /// How long the provider wants us to wait, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            Self::Unauthorized(_)
            | Self::NoCredit(_)
            | Self::ContextTooLong(_)
            | Self::NotFound(_)
            | Self::BadRequest(_)
            | Self::Refused(_)
            | Self::Network(_)
            | Self::TimedOut(_)
            | Self::Idle(_)
            | Self::BadStream(_)
            | Self::BadArguments(_) => None,
        }
    }
}
