//! What a client is sent during a silence.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::{KEEP_ALIVE, KEEP_ALIVE_INTERVAL};

/// What a client is sent when there is nothing else to send, and when.
pub struct KeepAlive {
    pub(super) interval: Interval,
    pub(super) message: Bytes,
    /// Counted anew from each piece that goes out.
    pub(super) after_silence: bool,
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

fn keep_alive_interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval
}
