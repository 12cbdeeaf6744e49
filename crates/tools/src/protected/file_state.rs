//! What stands at a path: a file with its bytes, a link with its target, or something else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::RawMode;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileState {
    /// A regular file.
    File { mode: RawMode, content: Content },
    /// A symbolic link.
    Link { target: String },
    /// A pipe, a socket or a device.
    Other { kind: RawMode },
}

/// What is kept of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// All of it.
    Whole(Bytes),
    /// It is too large for that: its size, and when and where it was written. It can be compared, not restored.
    Large { size: u64, stamp: (i64, i64, u64) },
}

/// Bytes that are written down as text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub Vec<u8>);

impl FileState {
    /// The text of a file, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::File { content: Content::Whole(Bytes(bytes)), .. } => std::str::from_utf8(bytes).ok(),
            Self::File { content: Content::Large { .. }, .. } | Self::Link { .. } | Self::Other { .. } => None,
        }
    }

    /// The same to whoever looks for what may run: of the mode only whether it can be executed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { mode, content }, Self::File { mode: other_mode, content: other_content }) => {
                content == other_content && (mode & 0o111 == 0) == (other_mode & 0o111 == 0)
            }
            (Self::File { .. } | Self::Link { .. } | Self::Other { .. }, _) => self == other,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}
