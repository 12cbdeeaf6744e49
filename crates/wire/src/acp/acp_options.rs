//! How a client is spoken to: in which words, and whether the draft of version 2 is on offer.

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
}

impl AcpOptions {
    /// What is asked for here, else what the other says.
    #[must_use]
    pub fn or_default(self, other: Self) -> Self {
        Self { dialect: self.dialect.or(other.dialect), v2: self.v2 || other.v2 }
    }

    /// These words, if any were asked for.
    pub fn with_dialect(dialect: Option<Dialect>) -> Self {
        Self { dialect, v2: false }
    }
}
