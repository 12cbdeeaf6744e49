//! What the streams of goose's clients tell of a log.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::{Entry, Event, ResetReason, RunId, Seq, SessionView};
use gander_http::sse::{Projection, SseWriter};
use gander_store::{DeltaForm, Limit, Store, StoreError};
use gander_wire::goose::{Transcript, output};
use serde_json::{Value, json};

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
            events.extend(output::project_goose_entry(&self.view, entry));
            events.extend(output::project_legacy_goose_events(&self.view, entry));
        }
        // A run that clears the conversation leaves nothing of it.
        if own && matches!(entry.event, Event::HistoryReset { reason: ResetReason::Cleared, .. }) {
            events.push(output::update_conversation_event(Transcript::default().all_messages()));
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

/// A whole session, for clients that listen before and after they ask.
pub struct SessionEvents {
    /// The run that is under way, for who comes in the middle of it.
    pub active: Option<RunId>,
    /// The session before the next entry.
    pub view: SessionView,
    /// Where it is read again when its history begins anew.
    pub store: Arc<dyn Store>,
    /// What people see of it, while that is told.
    pub transcript: Option<Transcript>,
}

impl Projection for SessionEvents {
    fn write_start(&mut self, frames: &mut SseWriter) {
        if let Some(run) = self.active {
            frames.write_unlogged(&output::active_requests_event(&[run.to_string()]));
        }
    }

    fn project_entry(&mut self, entry: &Entry, frames: &mut SseWriter) {
        let anew = self.transcript.take().map(|mut transcript| {
            transcript.apply_entry(entry);
            output::update_conversation_event(transcript.all_messages())
        });
        for mut event in output::project_goose_entry(&self.view, entry).into_iter().chain(anew) {
            if let Some(run) = entry.run {
                event["chat_request_id"] = json!(run);
                event["request_id"] = json!(run);
            }
            frames.write_event(&event);
        }
        self.view.apply(entry);
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn needs_restore(&self, entry: &Entry) -> bool {
        matches!(&entry.event, Event::HistoryReset { reason, .. } if *reason != ResetReason::Compacted)
    }

    fn restore(&mut self, upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (mut transcript, mut position) = (Transcript::default(), Seq::ZERO);
            while position < upto {
                let page = self.store.read(self.view.session, position, Limit::default(), DeltaForm::Joined).await?;
                let Some(last) = page.last() else { break };
                position = last.seq;
                page.iter().take_while(|entry| entry.seq <= upto).for_each(|entry| transcript.apply_entry(entry));
            }
            self.transcript = Some(transcript);
            Ok(())
        })
    }

    fn write_log_lost(&mut self, frames: &mut SseWriter) {
        frames.write_unlogged(&output::goose_error_event("the session is no more, reload the conversation"));
    }
}
