//! Why a call, or the whole way to an agent, failed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gander_wire::acp::client::AGENT_GONE;
use gander_wire::jsonrpc;

/// Why there is no way to the agent any more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// This side ended it.
    #[error("client disposed")]
    Disposed,
    /// The agent ended it.
    #[error("the agent closed the connection")]
    Closed,
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The agent sent more than a message may hold.
    #[error("the agent sent a message that is too long")]
    TooLong,
    /// A server refused: the status and what it said.
    #[error("the server refused with {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// A server could not be reached, or broke off.
    #[error("no connection to the server: {0}")]
    Unreachable(String),
    /// A stream broke and cannot be resumed: something may have been missed.
    #[error("the stream broke and cannot be resumed: {0}")]
    Interrupted(String),
}

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The agent answered with an error.
    #[error("{0}")]
    Refused(jsonrpc::Error),
    /// The agent is gone, or this client was disposed.
    #[error("{0}")]
    Gone(#[source] Arc<LinkError>),
    /// No answer came in time; the agent was told that none is wanted any more.
    #[error("no answer within {limit:?} to {method}")]
    Late {
        /// What was called.
        method: String,
        /// How long it had.
        limit: Duration,
    },
    /// The answer is not what the method returns.
    #[error("the answer to {method} cannot be read: {reason}")]
    Unreadable {
        /// What was called.
        method: String,
        reason: String,
    },
    /// The agent speaks another version of the protocol.
    #[error("the agent speaks another version of the protocol: {0}")]
    Version(String),
}

impl CallError {
    /// The JSON-RPC code: the agent's own, -32000 if it is gone, else that of an internal error.
    pub fn json_rpc_code(&self) -> i64 {
        match self {
            Self::Refused(error) => error.code,
            Self::Gone(_) => AGENT_GONE,
            Self::Late { .. } | Self::Unreadable { .. } | Self::Version(_) => jsonrpc::Code::Internal.number(),
        }
    }
}
