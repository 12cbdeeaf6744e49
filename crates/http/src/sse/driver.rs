//! The driver of every event stream: waits for what its source brings, the next keep-alive and the server's end.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::KeepAlive;

/// Where the events of a stream come from. The driver calls [`write_start`](Self::write_start) once, then
/// [`next_input`](Self::next_input) and [`write_input`](Self::write_input) in turn until the source is complete.
pub trait EventSource: Send + 'static {
    /// What it waits for.
    type Input: Send;

    /// What goes out before anything is waited for.
    fn write_start(&mut self, _bytes: &mut Vec<u8>) {}

    /// Waits for what comes next. It is dropped whenever a keep-alive is due, and must lose nothing by that.
    fn next_input(&mut self) -> impl Future<Output = Self::Input> + Send;

    /// Appends the events that follow from it; there may be none. This one is never dropped halfway.
    fn write_input(&mut self, input: Self::Input, bytes: &mut Vec<u8>) -> impl Future<Output = ()> + Send;

    /// True if nothing follows what was written.
    fn is_complete(&self) -> bool;
}

/// The events, as many in one piece as there are. It is pulled: a slow reader costs nothing but what the source holds.
pub fn drive_event_stream<S: EventSource>(
    source: S,
    keep_alive: KeepAlive,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let driver = EventDriver { source, keep_alive, stop, started: false };
    futures::stream::unfold(driver, |mut driver| async move {
        let piece = driver.next_piece().await?;
        Some((Ok(piece), driver))
    })
}

struct EventDriver<S> {
    source: S,
    keep_alive: KeepAlive,
    stop: CancellationToken,
    started: bool,
}

impl<S: EventSource> EventDriver<S> {
    /// Waits until there is something to send. `None` if there never will be.
    async fn next_piece(&mut self) -> Option<Bytes> {
        let mut bytes = Vec::new();
        if !std::mem::replace(&mut self.started, true) {
            self.source.write_start(&mut bytes);
        }
        if self.keep_alive.after_silence {
            self.keep_alive.interval.reset();
        }
        while bytes.is_empty() {
            if self.source.is_complete() {
                return None;
            }
            tokio::select! {
                // Keep-alives come before input: a busy log must not starve clients that count on them.
                biased;
                () = self.stop.cancelled() => return None,
                _ = self.keep_alive.interval.tick() => return Some(self.keep_alive.message.clone()),
                input = self.source.next_input() => self.source.write_input(input, &mut bytes).await,
            }
        }
        Some(bytes.into())
    }
}
