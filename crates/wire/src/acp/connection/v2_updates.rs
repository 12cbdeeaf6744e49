//! What a client of version 2 is told beside the updates that both versions have.

use gander_domain::{Entry, Event, Message, RunId};
use serde_json::{Value, json};

use super::attachment::{Attachment, AttachmentFeed};
use crate::acp::projection::{RawUpdate, SessionUpdateOut};
use crate::acp::v2;
use crate::jsonrpc::{MessageOrigin, Outbox};

impl<'e> AttachmentFeed<'_, 'e> {
    /// The updates of an entry that version 2 tells in its own way; `None` if it does not.
    ///
    /// A history is told in whole messages: pieces of text are for those who are there.
    pub(super) fn v2_updates(&self, entry: &Entry) -> Option<Vec<SessionUpdateOut<'e>>> {
        if let Event::MessageDone { message } = &entry.event {
            return Some(v2_whole_message_updates(message));
        }
        (entry.event.is_delta() && self.is_replaying()).then(Vec::new)
    }

    /// Acknowledges the prompt whose message this is. Its end is told by a state.
    pub(super) fn acknowledge_prompt(&mut self, run: Option<RunId>, message: &Message, origin: MessageOrigin) {
        if let Some(prompt) = run.and_then(|run| self.prompts.remove(&run)) {
            self.flush_update();
            self.peer.out.set_origin(origin);
            self.peer.respond_result(prompt.responder, &json!({ "messageId": message.id }));
        }
    }

    /// Tells the state that the session is in after an entry, if that may have changed.
    pub(super) fn send_state(&mut self, entry: &Entry, origin: MessageOrigin) {
        let Some(view) = self.attachment.view().filter(|_| !self.is_replaying()) else { return };
        let told = if let Event::RunEnded { outcome } = &entry.event {
            v2::v2_run_end_update(outcome, self.attachment.turn_usage())
        } else if changes_v2_state(&entry.event) {
            v2::v2_state_update(view)
        } else {
            return;
        };
        self.flush_update();
        self.peer.out.set_origin(origin);
        self.attachment.send_update(&mut self.peer.out, &raw_v2_update(told));
    }
}

impl Attachment {
    /// What a client that joins must know of the present: the message that is still growing, and the state.
    pub(super) fn send_present_v2_state(&self, out: &mut Outbox) {
        let Some(view) = self.view() else { return };
        let open =
            view.run.as_ref().and_then(|run| run.open.as_ref()).map(v2_whole_message_updates).unwrap_or_default();
        for update in open.into_iter().chain([raw_v2_update(v2::v2_state_update(view))]) {
            self.send_update(out, &update);
        }
    }
}

fn changes_v2_state(event: &Event) -> bool {
    matches!(event, Event::RunStarted { .. } | Event::QuestionAsked { .. } | Event::QuestionAnswered { .. })
}

fn v2_whole_message_updates(message: &Message) -> Vec<SessionUpdateOut<'static>> {
    v2::v2_message_updates(message).into_iter().map(raw_v2_update).collect()
}

pub(super) fn raw_v2_update(update: Value) -> SessionUpdateOut<'static> {
    SessionUpdateOut::Raw(Box::new(RawUpdate { update, meta: None }))
}
