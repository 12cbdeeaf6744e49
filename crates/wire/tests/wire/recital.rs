//! A conversation told entry by entry is the one that is folded at once, however often its history was reset.
#![allow(clippy::unwrap_used)]

use gander_domain::hidden_entries::HiddenEntries;
use gander_domain::{Entry, Event, Message, MessageId, Part, ResetReason, Role, Seq, Timestamp};
use gander_wire::adk::projection::{HistoryProjection, adk_session_history};
use gander_wire::goose::{ConversationProjection, whole_goose_transcript};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

fn message(number: u64) -> Message {
    let parts = vec![Part::Text { text: format!("message {number}") }];
    let id = MessageId::new(Uuid::from_u128(u128::from(number)));
    Message { id, role: Role::User, parts, interrupted: false, native: None }
}

/// Something said, or a reset that goes back so far.
fn entries(steps: &[(u8, u64)]) -> Vec<Entry> {
    let entry = |(seq, (kind, back)): (u64, &(u8, u64))| {
        let reset = |reason| {
            let replacement = vec![message(seq + 1_000), message(seq + 2_000)];
            Event::HistoryReset { keep_to: Seq(seq.saturating_sub(*back)), replacement, reason }
        };
        let event = match kind {
            0 => reset(ResetReason::Rewound),
            1 => reset(ResetReason::Compacted),
            _ => Event::MessageDone { message: message(seq) },
        };
        Entry { seq: Seq(seq), at: Timestamp::from_micros(0), run: None, event, meta: None }
    };
    (1..).zip(steps).map(entry).collect()
}

proptest! {
    #[test]
    fn told_piece_by_piece_it_is_the_same(steps in prop::collection::vec((0..6_u8, 1..20_u64), 0..40)) {
        let log = entries(&steps);
        let (mut hidden, mut recital, mut told) = (HiddenEntries::default(), ConversationProjection::default(), HistoryProjection::default());
        log.iter().for_each(|entry| hidden.apply_entry(entry));
        let (mut said, mut events) = (Vec::new(), Vec::<Value>::new());
        for entry in &log {
            let (more, happened) = (recital.project_entry(entry), told.project_entry(entry));
            if !hidden.is_hidden(entry.seq) {
                said.extend(more);
                events.extend(happened.iter().map(|event| json!(event)));
            }
        }
        said.extend(recital.open_questions());
        prop_assert_eq!(said, whole_goose_transcript(&log));
        prop_assert_eq!(events, adk_session_history(&log).iter().map(|event| json!(event)).collect::<Vec<Value>>());
    }
}
