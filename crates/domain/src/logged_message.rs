//! Whole messages and where they stand in the log, cut and replaced as its history is.

use crate::event::{Entry, Event, ResetReason, Seq};
use crate::message::Message;
use crate::timestamp::Timestamp;

/// A whole message of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedMessage {
    /// The entry that says it.
    pub seq: Seq,
    /// Which of the entry's messages it is.
    pub index: u32,
    /// When it was said.
    pub at: Timestamp,
    pub message: Message,
}

impl LoggedMessage {
    /// The only message of an entry.
    pub fn from_single_message(entry: &Entry, message: Message) -> Self {
        Self { seq: entry.seq, index: 0, at: entry.at, message }
    }

    /// The messages of an entry: one that was said, or all that replace a history.
    pub fn from_entry(entry: &Entry) -> impl Iterator<Item = Self> + '_ {
        let messages: &[Message] = if let Event::MessageDone { message } = &entry.event {
            std::slice::from_ref(message)
        } else if let Event::HistoryReset { replacement, .. } = &entry.event {
            replacement
        } else {
            &[]
        };
        let (seq, at) = (entry.seq, entry.at);
        (0..).zip(messages).map(move |(index, message)| Self { seq, index, at, message: message.clone() })
    }

    /// What is left of a talk after its history was reset. After a compaction people still see everything.
    pub fn apply_reset(talk: &mut Vec<Self>, entry: &Entry) {
        let Event::HistoryReset { keep_to, reason, .. } = &entry.event else { return };
        match reason {
            ResetReason::Compacted => {}
            ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {
                talk.retain(|spoken| spoken.seq <= *keep_to);
                talk.extend(Self::from_entry(entry));
            }
        }
    }
}
