//! The last words of a server on stderr.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The end of what it wrote to its standard error.
#[derive(Clone, Default)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<String>>,
    /// Cancelled when nothing follows.
    pub(super) over: CancellationToken,
}

impl StderrTail {
    /// All there will be of a server that ended: its streams close one after the other.
    pub(super) async fn last_lines(&self) -> String {
        drop(tokio::time::timeout(STDERR_TIMEOUT, self.over.cancelled()).await);
        self.text()
    }

    /// The last of them.
    fn text(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned()
    }

    pub(super) fn push_line(&self, line: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(line);
        let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
        let cut = kept.ceil_char_boundary(over);
        kept.drain(..cut);
    }
}

/// How much of what it complains about is kept.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// How long the last complaint of a server that ended may take to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);
