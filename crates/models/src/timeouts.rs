//! How long a provider is waited for, how much it may answer, and how often it is asked.

use std::time::Duration;

use super::retry::Retry;

/// How patient a connection is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeouts {
    /// How long is waited.
    pub limits: Limits,
    /// How often is asked.
    pub retry: Retry,
}

/// How long and how much is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the answer begins.
    pub header: Duration,
    /// Between two signs of life.
    pub idle: Duration,
    /// Between two events, however lively the connection.
    pub silence: Duration,
    /// Bytes of one answer.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            silence: Duration::from_secs(900),
            bytes: 128 * 1024 * 1024,
        }
    }
}
