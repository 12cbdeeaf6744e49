//! Identities: newtypes that cannot be mixed up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Makes new ids. The server hands out UUID v7, tests count.
pub trait IdGenerator {
    /// The next id, never given before.
    fn next_id(&mut self) -> Uuid;
}

macro_rules! uuid_methods {
    ($name:ident) => {
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
    };
}

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        uuid_methods!($name);

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

/// A conversation and its log. Shown as the same string at every door: a UUID, or `session-1` for one that was
/// numbered ([`SessionId::numbered`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SessionId(Uuid);

uuid_methods!(SessionId);

/// What stands before the number of a numbered session.
const NUMBERED_PREFIX: &str = "session-";

/// The first eight bytes of a numbered session's UUID: version 8, which is for ids of one's own making.
const NUMBERED_BYTES: [u8; 8] = [0x67, 0x61, 0x6e, 0x64, 0x65, 0x72, 0x80, 0x00];

impl SessionId {
    /// The session of this number: `session-1` and so on. Who numbers sessions never gives a number twice.
    pub const fn numbered(number: u32) -> Self {
        let [a, b, c, d, e, f, g, h] = NUMBERED_BYTES;
        let [w, x, y, z] = number.to_be_bytes();
        Self(Uuid::from_bytes([a, b, c, d, e, f, g, h, 0x80, 0, 0, 0, w, x, y, z]))
    }

    /// Its number, if it is a numbered one.
    pub fn number(self) -> Option<u32> {
        let bytes = self.0.as_bytes();
        let number = u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        (Self::numbered(number) == self).then_some(number)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "{NUMBERED_PREFIX}{number}"),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix(NUMBERED_PREFIX).and_then(|number| number.parse::<u32>().ok());
        match number.map(Self::numbered) {
            // `session-01` is no other way to write `session-1`.
            Some(session) if session.to_string() == text => Ok(session),
            Some(_) | None => Uuid::try_parse(text).map(Self),
        }
    }
}

impl From<SessionId> for String {
    fn from(session: SessionId) -> Self {
        session.to_string()
    }
}

impl TryFrom<String> for SessionId {
    type Error = uuid::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_session_is_written_as_its_number_and_read_back() {
        let first = SessionId::numbered(1);
        assert_eq!((first.to_string().as_str(), first.number()), ("session-1", Some(1)));
        assert_eq!("session-1".parse(), Ok(first));
        assert_eq!(serde_json::to_string(&first).ok().as_deref(), Some("\"session-1\""));
        assert_eq!(
            serde_json::from_str::<SessionId>("\"session-4294967295\"").ok(),
            Some(SessionId::numbered(u32::MAX))
        );
        assert_eq!(first.uuid().get_version_num(), 8);
        for wrong in ["session-01", "session-", "session--1", "session-4294967296", "Session-1"] {
            assert!(wrong.parse::<SessionId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn any_other_session_is_written_as_its_uuid() {
        let text = "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3";
        let session: SessionId = text.parse().expect("it is a UUID");
        assert_eq!((session.to_string().as_str(), session.number()), (text, None));
        assert_eq!(serde_json::to_string(&session).ok(), Some(format!("\"{text}\"")));
    }
}
