//! A run that was begun over a live connection: every event has an id of its own, and the turn's end is told.

use gander_domain::Entry;
use uuid::Uuid;

use super::{AdkProjection, RunStage, derived_adk_id};
use crate::adk::types::AdkEvent;

impl AdkProjection {
    /// The events that this entry made, in the words of a live connection.
    pub(super) fn mark_live_events(&self, entry: &Entry, events: &mut Vec<AdkEvent>, from: usize) {
        for (location, event) in events.iter_mut().enumerate().skip(from) {
            event.node_info.path.clear();
            if event.partial.take() == Some(true) {
                event.partial = Some(true);
                event.id = live_adk_event_id(&event.id, entry, location - from);
            }
        }
        if matches!(self.stage, RunStage::Ended(_)) {
            let mut last = self.empty_event(derived_adk_id(self.run.uuid(), 3), entry.at);
            last.node_info.path.clear();
            last.turn_complete = Some(true);
            events.push(last);
        }
    }
}

fn live_adk_event_id(shared: &str, entry: &Entry, location: usize) -> String {
    let salt = (u128::from(entry.seq.0) << 16) | (location as u128 + 1);
    shared.parse().map_or_else(|_| shared.to_owned(), |id: Uuid| derived_adk_id(id, salt))
}
