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

use crate::protocols::acp::UNSENT;
use crate::sse::{self, KEEP_ALIVE, SILENCE};

/// The writing end.
#[derive(Debug)]
pub(super) struct Pipe {
    shared: Arc<Shared>,
}

/// The reading end: the body of a response. It ends when the writing end is dropped or the server stops.
pub struct Events {
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
pub(super) fn pipe(read: Arc<Notify>, stop: CancellationToken) -> (Pipe, Events) {
    let shared = Arc::new(Shared { state: Mutex::default(), read });
    let stop = Box::pin(stop.cancelled_owned());
    let events = Events { shared: Arc::clone(&shared), silence: Box::pin(sleep(SILENCE)), stop };
    (Pipe { shared }, events)
}

impl Pipe {
    /// Adds one event.
    pub(super) fn event(&self, id: Option<&dyn std::fmt::Display>, message: &[u8]) {
        let mut state = self.shared.lock();
        sse::event(&mut state.bytes, id, message);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// True if the reader is not far behind.
    pub(super) fn has_room(&self) -> bool {
        self.shared.lock().bytes.len() < UNSENT
    }

    /// True if nobody will read any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.shared.lock().abandoned
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

impl Stream for Events {
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
            this.silence.as_mut().reset(Instant::now() + SILENCE);
            return Poll::Ready(Some(Ok(taken.into())));
        }
        match this.silence.as_mut().poll(context) {
            Poll::Ready(()) => {
                this.silence.as_mut().reset(Instant::now() + SILENCE);
                Poll::Ready(Some(Ok(KEEP_ALIVE)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Events {
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
        let (pipe, mut events) = pipe(Arc::default(), CancellationToken::new());
        pipe.event(Some(&"1.2.0"), b"{\"a\":\n1}");
        pipe.event(None, b"{}");
        assert_eq!(events.next().await.unwrap().unwrap(), "id: 1.2.0\ndata: {\"a\": 1}\n\ndata: {}\n\n");
        let before = Instant::now();
        assert_eq!(events.next().await.unwrap().unwrap(), KEEP_ALIVE);
        assert_eq!(before.elapsed().as_secs(), 15);
        pipe.event(None, b"{}");
        assert_eq!((pipe.has_room(), pipe.is_abandoned()), (true, false));
        drop(pipe);
        assert_eq!(events.next().await.unwrap().unwrap(), "data: {}\n\n");
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_leaves_is_noticed_and_a_stop_ends_the_stream() {
        let (read, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let (writer, events) = pipe(Arc::clone(&read), stop.clone());
        drop(events);
        read.notified().await;
        assert!(writer.is_abandoned());
        let (_writer, mut events) = pipe(read, stop.clone());
        stop.cancel();
        assert!(events.next().await.is_none());
    }
}
