//! Messages of the agent told whole, for clients that turned streaming off.

use gander_domain::{Entry, Event, Message, Role};

use super::attachment::AttachmentFeed;
use crate::acp::projection::{SessionUpdateOut, whole_message_output};

impl<'e> AttachmentFeed<'_, 'e> {
    /// Tells each message of the agent whole, or as it is written.
    pub(super) fn with_whole_messages(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// The updates of an entry for a client that is told messages whole; `None` if they are as for others.
    pub(super) fn whole_updates(&self, entry: &'e Entry) -> Option<Vec<SessionUpdateOut<'e>>> {
        if !self.whole {
            return None;
        }
        if let Event::MessageDone { message: message @ Message { role: Role::Agent, .. } } = &entry.event {
            return Some(whole_message_output(message));
        }
        entry.event.is_delta().then(Vec::new)
    }
}
