//! Responses that hold a whole session: few are made at once, and those that nobody reads yet wait in files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::spool::Spool;

/// So many responses that hold a whole session or run are made at once: each takes many times its length meanwhile.
const MAX_WHOLE_RESPONSES: usize = 4;

/// Who waits longer for the permit to be made such a response is told to come back.
const WHOLE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Too many responses that hold a whole session or run are being made.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many large answers are being made, try again in a moment")]
pub struct TooManyWholeResponses;

/// What all connections of one server share, whatever carries them.
#[derive(Debug)]
pub struct LargeResponses {
    pub spool: Arc<Spool>,
    permits: Arc<Semaphore>,
}

impl LargeResponses {
    /// Responses that nobody reads yet wait in this folder.
    pub fn new(folder: PathBuf) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(MAX_WHOLE_RESPONSES));
        Arc::new(Self { spool: Arc::new(Spool::new(folder)), permits })
    }

    /// Waits for the permit to make such a response, for as long as it takes: its client is served meanwhile.
    pub async fn wait_for_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Waits for the permit to make such a response. It is kept until the response was handed over.
    pub async fn permit(&self) -> Result<OwnedSemaphorePermit, TooManyWholeResponses> {
        let permit = tokio::time::timeout(WHOLE_RESPONSE_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await;
        permit.map_err(|_| TooManyWholeResponses)?.map_err(|_| TooManyWholeResponses)
    }
}
