//! The driver of every event stream: waits for what its source brings, the next keep-alive and the server's end.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{KEEP_ALIVE, KEEP_ALIVE_INTERVAL};

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

/// What a client is sent when there is nothing else to send, and when.
pub struct KeepAlive {
    interval: Interval,
    message: Bytes,
    /// Counted anew from each piece that goes out.
    after_silence: bool,
}

impl KeepAlive {
    /// A comment after a long silence.
    pub fn comment_after_silence() -> Self {
        Self { interval: keep_alive_interval(KEEP_ALIVE_INTERVAL), message: KEEP_ALIVE, after_silence: true }
    }

    /// This message at fixed times, however much else is sent.
    pub fn message_every(period: Duration, message: Bytes) -> Self {
        Self { interval: keep_alive_interval(period), message, after_silence: false }
    }
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

fn keep_alive_interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval
}
