//! A stream of server-sent events between a connection and whoever reads it: bounded by the writer, counted in bytes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use futures::Stream;
use gander_http::sse::{self, EventSource, KeepAlive, drive_event_stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::protocols::acp::MAX_UNSENT;

/// The writing end.
#[derive(Debug)]
pub(super) struct SsePipe {
    shared: Arc<Shared>,
}

/// The reading end: the body of a response. It ends when the writing end is dropped or the server stops.
#[derive(Debug)]
pub struct SsePipeReader {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The writer wants to know when something was read.
    read: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    reader: Option<Waker>,
    /// Something large waits for the reader to want more.
    wanted: bool,
    over: bool,
    abandoned: bool,
}

/// Two ends. The writer is told by `read` when something was read, or will never be.
pub(super) fn sse_pipe(read: Arc<Notify>, stop: CancellationToken) -> (SsePipe, SsePipeReader) {
    let shared = Arc::new(Shared { state: Mutex::default(), read });
    let reader = SsePipeReader { shared: Arc::clone(&shared), stop };
    (SsePipe { shared }, reader)
}

impl SsePipe {
    /// Adds one event.
    pub(super) fn push_event(&self, id: Option<&dyn std::fmt::Display>, message: &[u8]) {
        let mut state = self.shared.lock();
        sse::append_sse_event(&mut state.bytes, id, message);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// True if a message of this length can be added: a small one while the reader is not far behind, a large one when it
    /// has read everything and wants more. The writer is told when it does.
    pub(super) fn can_take(&self, bytes: usize) -> bool {
        let mut state = self.shared.lock();
        if bytes < MAX_UNSENT {
            return state.bytes.len() < MAX_UNSENT;
        }
        let takes = state.bytes.is_empty() && state.reader.is_some();
        state.wanted = !takes;
        takes
    }

    /// True if the reader is not far behind.
    pub(super) fn has_capacity(&self) -> bool {
        self.shared.lock().bytes.len() < MAX_UNSENT
    }

    /// True if nobody will read any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.shared.lock().abandoned
    }
}

impl Drop for SsePipe {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

impl SsePipeReader {
    /// The events, until the writing end is dropped or the server stops.
    pub fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let stop = self.stop.clone();
        drive_event_stream(self, KeepAlive::comment_after_silence(), stop)
    }
}

impl EventSource for SsePipeReader {
    type Input = Vec<u8>;

    /// Waits until something was pushed or the writing end is gone. What was pushed stays until it is given out.
    fn next_input(&mut self) -> impl Future<Output = Vec<u8>> + Send {
        std::future::poll_fn(|context| {
            let mut state = self.shared.lock();
            if state.bytes.is_empty() && !state.over {
                state.reader = Some(context.waker().clone());
                if std::mem::take(&mut state.wanted) {
                    self.shared.read.notify_one();
                }
                return Poll::Pending;
            }
            Poll::Ready(std::mem::take(&mut state.bytes))
        })
    }

    async fn write_input(&mut self, pushed: Vec<u8>, bytes: &mut Vec<u8>) {
        *bytes = pushed;
        self.shared.read.notify_one();
    }

    fn is_complete(&self) -> bool {
        let state = self.shared.lock();
        state.over && state.bytes.is_empty()
    }
}

impl Drop for SsePipeReader {
    fn drop(&mut self) {
        self.shared.lock().abandoned = true;
        self.shared.read.notify_one();
    }
}

impl Shared {
    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::StreamExt as _;
    use gander_http::sse::KEEP_ALIVE;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn events_leave_together_silence_is_broken_and_the_end_is_seen() {
        let (pipe, reader) = sse_pipe(Arc::default(), CancellationToken::new());
        let mut events = std::pin::pin!(reader.into_events());
        pipe.push_event(Some(&"1.2.0"), b"{\"a\":\n1}");
        pipe.push_event(None, b"{}");
        assert_eq!(events.next().await.unwrap().unwrap(), "id: 1.2.0\ndata: {\"a\": 1}\n\ndata: {}\n\n");
        let before = Instant::now();
        assert_eq!(events.next().await.unwrap().unwrap(), KEEP_ALIVE);
        assert_eq!(before.elapsed().as_secs(), 15);
        pipe.push_event(None, b"{}");
        assert_eq!((pipe.has_capacity(), pipe.is_abandoned()), (true, false));
        drop(pipe);
        assert_eq!(events.next().await.unwrap().unwrap(), "data: {}\n\n");
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_is_noticed_and_a_stop_ends_the_stream() {
        let (read, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let (writer, events) = sse_pipe(Arc::clone(&read), stop.clone());
        drop(events);
        read.notified().await;
        assert!(writer.is_abandoned());
        let (_writer, reader) = sse_pipe(read, stop.clone());
        let mut events = std::pin::pin!(reader.into_events());
        stop.cancel();
        assert!(events.next().await.is_none());
    }
}
