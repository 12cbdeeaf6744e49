//! The real clock and real ids: the only place where time and chance enter.

use std::time::{SystemTime, UNIX_EPOCH};

use gander_domain::{IdGenerator, Timestamp};
use uuid::Uuid;

/// The time.
pub fn current_time() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// Hands out UUID v7: unique, and sorted by the time they were made.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl IdGenerator for SystemIds {
    fn next_id(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}
