//! What may go wrong in the model, as a test decides.

use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Entry, SessionId};

use crate::node::CommandAnswer;
use crate::{Epoch, StoreError};

/// What goes wrong between a node and the model, for simulations.
#[async_trait]
pub trait ModelFaults: Send + Sync + 'static {
    /// Before a call is looked at. After an error nothing of it is stored.
    async fn before_call(&self) -> Result<(), StoreError>;

    /// After a write was stored: the caller of a failed one does not know that it was.
    async fn after_write(&self) -> Result<(), StoreError>;

    /// When the copies of a hint arrive; none if it is lost.
    fn hint_delays(&self) -> Vec<Duration>;

    /// True if sessions cannot be deleted.
    fn refuses_delete(&self) -> bool {
        false
    }

    /// Told of every append that counts: the writer's epoch, and the one that may write.
    fn on_append(&self, _session: SessionId, _written: Epoch, _current: Epoch) {}

    /// A seeded bug: whoever claimed the session since may be ignored.
    fn ignores_epoch(&self) -> bool {
        false
    }

    /// A seeded bug in what is read.
    fn change_read(&self, _entries: &mut Vec<Entry>) {}

    /// A seeded bug in what is stored.
    fn change_append(&self, _entries: &mut Vec<Entry>) {}

    /// A seeded bug in what senders of commands are told.
    fn change_answer(&self, _answer: &mut CommandAnswer) {}
}
