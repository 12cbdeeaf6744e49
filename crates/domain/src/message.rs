//! Messages, and how the last part of an open message grows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DeltaKind, MessageId, Part};

/// A whole message. What the log holds in one piece is authoritative over its deltas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Stable at every door.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// True if it was cut off (crash, retry, cancel). Stays visible, is not sent to a model again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The provider's own form, for exact replay to the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<ProviderPayload>,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program in a person's place.
    User,
    /// The agent.
    Agent,
    /// Results of tools. Occurs only in model context and resets: in the log a result is `ToolDone`.
    Tool,
}

/// A provider's own form of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderPayload {
    /// Which wire understands it, such as `anthropic` or `openai_responses`.
    pub wire: String,
    /// The items, opaque.
    pub items: Value,
}

impl ProviderPayload {
    /// What no wire is called.
    const SYNTHETIC_WIRE: &'static str = "unasked";

    /// What no wire is called either.
    const SESSION_WIRE: &'static str = "session";

    /// The mark of a message by which the session itself answers a command: it is for people alone.
    pub fn made_by_session() -> Self {
        Self { wire: Self::SESSION_WIRE.to_owned(), items: Value::Null }
    }

    /// The mark of a message that an agent's loop made by itself: no model wrote it.
    pub fn made_by_server() -> Self {
        Self { wire: Self::SYNTHETIC_WIRE.to_owned(), items: Value::Null }
    }
}

/// A piece added to the last part of the open message.
///
/// A change of `growth` opens the next part: the machine numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// What grows.
    pub growth: DeltaKind,
    /// By how much.
    pub text: String,
}

impl Delta {
    /// The longest text of one delta in the log, in bytes as JSON writes it. Readers with a fixed buffer of 64 KiB for
    /// a line or an event are common, and what a protocol puts around the text has to fit beside it.
    pub const MAX_ENCODED_BYTES: usize = 56 * 1024;

    /// A text of so many bytes is never longer than [`Delta::MAX_ENCODED_BYTES`] as JSON, whatever it says: deltas that
    /// are joined stay within it, so that nobody has to look at their letters.
    pub const MAX_JOINED_BYTES: usize = Self::MAX_ENCODED_BYTES / MAX_ESCAPE_BYTES;

    /// A text in pieces of at most [`Delta::MAX_ENCODED_BYTES`], cut between characters.
    pub(crate) fn split_text(text: String) -> Vec<String> {
        if text.len() <= Self::MAX_JOINED_BYTES {
            return vec![text];
        }
        let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
        for letter in text.chars() {
            let bytes = json_encoded_len(letter);
            if used + bytes > Self::MAX_ENCODED_BYTES {
                pieces.push(std::mem::take(&mut piece));
                used = 0;
            }
            piece.push(letter);
            used += bytes;
        }
        pieces.push(piece);
        pieces
    }
}

/// The longest escape of one byte.
const MAX_ESCAPE_BYTES: usize = 6;

fn json_encoded_len(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\x1f' => MAX_ESCAPE_BYTES,
        _ => letter.len_utf8(),
    }
}

impl Message {
    /// True if an agent's loop made it by itself: it is no turn of a model's.
    pub fn is_synthetic(&self) -> bool {
        self.native.as_ref().is_some_and(|native| native.wire == ProviderPayload::SYNTHETIC_WIRE)
    }

    /// True if the session itself said it, about a command that it carried out.
    pub fn is_by_session(&self) -> bool {
        self.native.as_ref().is_some_and(|native| native.wire == ProviderPayload::SESSION_WIRE)
    }

    /// A message of one text part.
    pub fn text(id: MessageId, role: Role, text: impl Into<String>) -> Self {
        Self { id, role, parts: vec![Part::text(text)], interrupted: false, native: None }
    }

    /// All its text parts, joined.
    pub fn plain_text(&self) -> String {
        plain_text(&self.parts)
    }
}

/// All text parts, joined by line breaks.
pub fn plain_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_deltas_come_apart_between_characters_and_lose_nothing() {
        assert_eq!(Delta::split_text("short".to_owned()), ["short"]);
        for (text, least) in [("\u{1}\"ä😀x".repeat(20_000), 6), ("y".repeat(2 << 20), 37), ("\u{2}".repeat(10_200), 2)]
        {
            let pieces = Delta::split_text(text.clone());
            assert!(pieces.len() >= least, "{}", pieces.len());
            for piece in &pieces {
                let line = serde_json::to_string(piece).expect("a text is JSON");
                assert!(line.len() - 2 <= Delta::MAX_ENCODED_BYTES, "{}", line.len());
            }
            assert_eq!(pieces.concat(), text);
        }
        let worst = serde_json::to_string(&"\u{1}".repeat(Delta::MAX_JOINED_BYTES)).expect("a text is JSON");
        assert!(worst.len() - 2 <= Delta::MAX_ENCODED_BYTES);
    }
}
