//! What was put away under a name: its content, and how much of it a session's log tells.

use serde::{Deserialize, Serialize};

/// A larger content is not written to the log: it is read where it is kept.
pub const MAX_LOGGED_BYTES: usize = 64 << 10;

/// The content of one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ArtifactContent {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// Anything else.
    Bytes {
        /// Standard base64, padded.
        data: String,
    },
}

impl ArtifactContent {
    /// How many bytes it takes as it is stored.
    pub fn size_in_bytes(&self) -> usize {
        let (Self::Text { text: held } | Self::Bytes { data: held }) = self;
        held.len()
    }

    /// What the log tells of it.
    pub fn content_for_log(&self) -> Option<Self> {
        (self.size_in_bytes() <= MAX_LOGGED_BYTES).then(|| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_no_more_than_its_share() {
        let of = |length| ArtifactContent::Text { text: "x".repeat(length) };
        assert_eq!(of(MAX_LOGGED_BYTES).content_for_log(), Some(of(MAX_LOGGED_BYTES)));
        assert_eq!(of(MAX_LOGGED_BYTES + 1).content_for_log(), None);
    }
}
