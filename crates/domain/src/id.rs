//! Identities and time: newtypes that cannot be mixed up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Makes new ids. The server hands out UUID v7, tests count.
pub trait IdGenerator {
    /// The next id, never given before.
    fn next_id(&mut self) -> Uuid;
}

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an id that already exists.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// Makes a new one.
            pub fn make(ids: &mut dyn IdGenerator) -> Self {
                Self(ids.next_id())
            }

            /// The bare id.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }
    };
}

uuid_newtype!(
    /// A conversation and its log. Shown as the same string at every door.
    SessionId
);
uuid_newtype!(
    /// One prompt and everything that followed from it.
    RunId
);
uuid_newtype!(
    /// A message of a person, of the agent, or of a tool.
    MessageId
);
uuid_newtype!(
    /// Something a person is asked.
    QuestionId
);
uuid_newtype!(
    /// One use of a tool. The provider's own id stays in [`crate::ProviderPayload`].
    ToolCallId
);

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

/// Microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}
