//! The stream of a whole session, as goose's clients listen to it.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::{Entry, Event, ResetReason, RunId, Seq, SessionView};
use gander_http::sse::{SseProjection, SseWriter};
use gander_store::{DeltaForm, Limit, Store, StoreError};
use gander_wire::goose::{GooseTranscript, projection};
use serde_json::json;

/// A whole session, for clients that listen before and after they ask.
pub struct SessionEvents {
    /// The run that is under way, for who comes in the middle of it.
    pub active: Option<RunId>,
    /// The session before the next entry.
    pub view: SessionView,
    /// Where it is read again when its history begins anew.
    pub store: Arc<dyn Store>,
    /// What people see of it, while that is told.
    pub transcript: Option<GooseTranscript>,
}

impl SseProjection for SessionEvents {
    fn write_start(&mut self, frames: &mut SseWriter) {
        if let Some(run) = self.active {
            frames.write_unlogged(&projection::goose_active_requests_event(&[run.to_string()]));
        }
    }

    fn project_entry(&mut self, entry: &Entry, frames: &mut SseWriter) {
        let anew = self.transcript.take().map(|mut transcript| {
            transcript.apply_entry(entry);
            projection::goose_conversation_event(transcript.all_messages())
        });
        for mut event in projection::project_goose_entry(&self.view, entry).into_iter().chain(anew) {
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
            let (mut transcript, mut position) = (GooseTranscript::default(), Seq::ZERO);
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
        frames.write_unlogged(&projection::goose_error_event("the session is no more, reload the conversation"));
    }
}
