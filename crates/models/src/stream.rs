//! The stream of one answer: batches of events, ended by dropping it.

use std::fmt;
use std::pin::Pin;

use futures::{Stream, StreamExt, stream};

use super::{ModelError, ModelEvent};

/// The answer of one call, in batches as the network brought them.
///
/// Dropping it stops reading at once.
pub struct ModelStream {
    batches: Pin<Box<dyn Stream<Item = Result<Vec<ModelEvent>, ModelError>> + Send>>,
}

impl ModelStream {
    /// Wraps a stream of batches. It should end after [`ModelEvent::Done`] or an error.
    pub fn new(batches: impl Stream<Item = Result<Vec<ModelEvent>, ModelError>> + Send + 'static) -> Self {
        Self { batches: Box::pin(batches) }
    }

    /// An answer that is already there.
    pub fn from_batches(batches: Vec<Result<Vec<ModelEvent>, ModelError>>) -> Self {
        Self::new(stream::iter(batches))
    }

    /// The next batch, never empty; `None` after the end.
    pub async fn next_batch(&mut self) -> Option<Result<Vec<ModelEvent>, ModelError>> {
        self.batches.next().await
    }
}

impl fmt::Debug for ModelStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelStream")
    }
}
