//! How a client is spoken to: in which words, and whether the draft of version 2 is on offer.

use gander_domain::IfBusy;
use serde::{Deserialize, Serialize};

use super::Dialect;

/// How a client is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcpOptions {
    /// In these words; absent: in the client's own, as it introduces itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Version 2 of the protocol, a draft, is spoken with clients that ask for it.
    #[serde(default)]
    pub v2: bool,
    /// What a prompt does while a turn runs; absent: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_busy: Option<WhenBusy>,
}

/// What a prompt does while a turn runs, unless it says so itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// It is refused, as the protocol knows no queue.
    #[default]
    Refuse,
    /// It waits for its turn.
    Queue,
    /// It is handed to the running turn, and answered when that one ends.
    Steer,
}

impl From<WhenBusy> for IfBusy {
    fn from(when: WhenBusy) -> Self {
        match when {
            WhenBusy::Refuse => Self::Refuse,
            WhenBusy::Queue => Self::Queue,
            WhenBusy::Steer => Self::Steer,
        }
    }
}

impl AcpOptions {
    /// What is asked for here, else what the other says.
    #[must_use]
    pub fn or_default(self, other: Self) -> Self {
        Self {
            dialect: self.dialect.or(other.dialect),
            v2: self.v2 || other.v2,
            if_busy: self.if_busy.or(other.if_busy),
        }
    }

    /// These words, if any were asked for.
    pub fn with_dialect(dialect: Option<Dialect>) -> Self {
        Self { dialect, ..Self::default() }
    }
}
