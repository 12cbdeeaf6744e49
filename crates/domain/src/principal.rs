//! Who owns a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who is behind a command: the name of a token, or `owner`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Principal(String);

impl Principal {
    /// The one who started the server.
    pub fn owner() -> Self {
        Self("owner".to_owned())
    }

    /// A named other.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
