//! A stream of server-sent events between a connection and whoever reads it: bounded by the writer, counted in bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::Stream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::protocols::acp::MAX_UNSENT;
use crate::sse::{self, KEEP_ALIVE, KEEP_ALIVE_INTERVAL};

/// The writing end.
#[derive(Debug)]
pub(super) struct SsePipe {
    shared: Arc<Shared>,
}

/// The reading end: the body of a response. It ends when the writing end is dropped or the server stops.
pub struct SsePipeReader {
    shared: Arc<Shared>,
    silence: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
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
    over: bool,
    abandoned: bool,
}

/// Two ends. The writer is told by `read` when something was read, or will never be.
pub(super) fn sse_pipe(read: Arc<Notify>, stop: CancellationToken) -> (SsePipe, SsePipeReader) {
    let shared = Arc::new(Shared { state: Mutex::default(), read });
    let stop = Box::pin(stop.cancelled_owned());
    let events = SsePipeReader { shared: Arc::clone(&shared), silence: Box::pin(sleep(KEEP_ALIVE_INTERVAL)), stop };
    (SsePipe { shared }, events)
}

impl SsePipe {
    /// Adds one event.
    pub(super) fn push_event(&self, id: Option<&dyn std::fmt::Display>, message: &[u8]) {
        let mut state = self.shared.lock();
        sse::append_event(&mut state.bytes, id, message);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
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

impl Stream for SsePipeReader {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        let taken = {
            let mut state = this.shared.lock();
            if state.bytes.is_empty() && state.over {
                return Poll::Ready(None);
            }
            state.reader = Some(context.waker().clone());
            std::mem::take(&mut state.bytes)
        };
        if !taken.is_empty() {
            this.shared.read.notify_one();
            this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
            return Poll::Ready(Some(Ok(taken.into())));
        }
        match this.silence.as_mut().poll(context) {
            Poll::Ready(()) => {
                this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
                Poll::Ready(Some(Ok(KEEP_ALIVE)))
            }
            Poll::Pending => Poll::Pending,
        }
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

    #[tokio::test(start_paused = true)]
    async fn events_leave_together_silence_is_broken_and_the_end_is_seen() {
        let (pipe, mut events) = sse_pipe(Arc::default(), CancellationToken::new());
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
        let (_writer, mut events) = sse_pipe(read, stop.clone());
        stop.cancel();
        assert!(events.next().await.is_none());
    }
}
