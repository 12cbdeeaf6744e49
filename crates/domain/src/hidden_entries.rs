//! What of a log people see no more.

use crate::event::{Entry, Event, ResetReason, Seq};

/// What of a log people see no more, because its history was reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenEntries {
    /// Entries after the first and before the second place.
    ranges: Vec<(Seq, Seq)>,
}

impl HiddenEntries {
    /// Takes in the next entry.
    pub fn apply_entry(&mut self, entry: &Entry) {
        let Event::HistoryReset { keep_to, reason, .. } = &entry.event else { return };
        match reason {
            ResetReason::Compacted => {}
            ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {
                self.ranges.retain(|(after, _)| after < keep_to);
                self.ranges.push((*keep_to, entry.seq));
            }
        }
    }

    /// True if what this entry said was taken back.
    pub fn is_hidden(&self, seq: Seq) -> bool {
        self.ranges.iter().any(|(after, before)| *after < seq && seq < *before)
    }
}
