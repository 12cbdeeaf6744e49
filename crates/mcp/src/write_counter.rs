//! Counts what a program is told, so that what never reached it is known.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// How often something was written. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct WriteCounter(Arc<AtomicU64>);

impl WriteCounter {
    /// It never counts too little, also while a write is under way.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A stream whose writes are counted.
pub(super) struct CountedWriter<W> {
    stream: W,
    counter: WriteCounter,
}

impl<W> CountedWriter<W> {
    pub(super) fn new(stream: W) -> Self {
        Self { stream, counter: WriteCounter::default() }
    }

    pub(super) fn counter(&self) -> WriteCounter {
        self.counter.clone()
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for CountedWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let counter = self.counter.clone();
        counter.0.fetch_add(1, Ordering::SeqCst);
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if !matches!(written, Poll::Ready(Ok(1..))) {
            counter.0.fetch_sub(1, Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn only_what_arrived_counts() {
        let (reader, writer) = tokio::io::duplex(64);
        let mut told = CountedWriter::new(writer);
        told.write_all(b"heard").await.unwrap();
        assert_eq!(told.counter().count(), 1);
        drop(reader);
        told.write_all(b"not heard").await.unwrap_err();
        assert_eq!(told.counter().count(), 1);
    }
}
