//! What is known about the origin of some text, and what a question about carrying it out says.

use serde::{Deserialize, Serialize};

/// What is known about the origin of some text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextMark {
    /// Where untrusted text in it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// Where private data in it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<String>,
}

impl TextMark {
    /// True if nothing is known, or nothing has to be.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A call that would carry something out, as a question about it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutwardCall {
    /// Where to: what "for the rest of this session" covers.
    pub destination: String,
    /// Why it is asked about although it might run unasked otherwise.
    pub reason: String,
}
