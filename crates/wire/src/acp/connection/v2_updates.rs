//! What a client of version 2 is told beside the updates that both versions have.

use gander_domain::{Entry, Event, Message, RunId};
use serde_json::{Value, json};

use super::attachment::{Attachment, Feed};
use crate::acp::output::Update;
use crate::acp::v2;
use crate::jsonrpc::{Outbox, Place};

impl<'e> Feed<'_, 'e> {
    /// The updates of an entry that version 2 tells in its own way; `None` if it does not.
    ///
    /// A history is told in whole messages: pieces of text are for those who are there.
    pub(super) fn draft_updates(&self, entry: &Entry) -> Option<Vec<Update<'e>>> {
        if let Event::MessageDone { message } = &entry.event {
            return Some(whole(message));
        }
        (entry.event.is_delta() && self.is_replaying()).then(Vec::new)
    }

    /// Acknowledges the prompt whose message this is. Its end is told by a state.
    pub(super) fn acknowledge(&mut self, run: Option<RunId>, message: &Message, place: Place) {
        if let Some(prompt) = run.and_then(|run| self.prompts.remove(&run)) {
            self.flush();
            self.peer.out.address(place);
            self.peer.respond(prompt.responder, &json!({ "messageId": message.id }));
        }
    }

    /// Tells the state that the session is in after an entry, if that may have changed.
    pub(super) fn tell_state(&mut self, entry: &Entry, place: Place) {
        let Some(view) = self.attachment.view().filter(|_| !self.is_replaying()) else { return };
        let told = if let Event::RunEnded { outcome } = &entry.event {
            v2::ended(outcome, self.attachment.usage())
        } else if changes_state(&entry.event) {
            v2::state(view)
        } else {
            return;
        };
        self.flush();
        self.peer.out.address(place);
        self.attachment.tell(&mut self.peer.out, &draft(told));
    }
}

impl Attachment {
    /// What a client that joins must know of the present: the message that is still growing, and the state.
    pub(super) fn tell_present(&self, out: &mut Outbox) {
        let Some(view) = self.view() else { return };
        let open = view.run.as_ref().and_then(|run| run.open.as_ref()).map(whole).unwrap_or_default();
        for update in open.into_iter().chain([draft(v2::state(view))]) {
            self.tell(out, &update);
        }
    }
}

fn changes_state(event: &Event) -> bool {
    matches!(event, Event::RunStarted { .. } | Event::QuestionAsked { .. } | Event::QuestionAnswered { .. })
}

fn whole(message: &Message) -> Vec<Update<'static>> {
    v2::messages(message).into_iter().map(draft).collect()
}

fn draft(update: Value) -> Update<'static> {
    Update::Draft(Box::new(update))
}
