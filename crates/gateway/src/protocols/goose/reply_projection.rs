//! One run as the answer to goose's `/reply`.

use gander_domain::{Entry, Event, ResetReason, RunId, SessionView};
use gander_wire::goose::{GooseTranscript, projection};
use serde_json::Value;

/// One run, as the answer to its prompt.
pub struct ReplyProjection {
    view: SessionView,
    run: RunId,
    over: bool,
}

impl ReplyProjection {
    /// The run as told by what follows this view.
    pub fn new(view: SessionView, run: RunId) -> Self {
        Self { view, run, over: false }
    }

    /// What an entry says to who asked.
    pub fn project_entry(&mut self, entry: &Entry) -> Vec<Value> {
        let own = entry.run == Some(self.run) && !self.over;
        let mut events = Vec::new();
        if own || (entry.run.is_none() && self.is_active()) {
            events.extend(projection::project_goose_entry(&self.view, entry));
            events.extend(projection::project_legacy_goose_events(&self.view, entry));
        }
        // A run that clears the conversation leaves nothing of it.
        if own && matches!(entry.event, Event::HistoryReset { reason: ResetReason::Cleared, .. }) {
            events.push(projection::goose_conversation_event(GooseTranscript::default().all_messages()));
        }
        self.over |= own && matches!(entry.event, Event::RunEnded { .. });
        self.view.apply(entry);
        events
    }

    /// True if the run has ended.
    pub fn is_complete(&self) -> bool {
        self.over
    }

    fn is_active(&self) -> bool {
        self.view.run.as_ref().is_some_and(|active| active.id == self.run)
    }
}
