//! The times of adjacent deltas, coded by what changes.

use gander_domain::Timestamp;
use serde::{Deserialize, Serialize};

/// When each of some deltas was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Times {
    /// The first one, in microseconds.
    at: i64,
    /// (which one, how much later than the one before): those that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    later: Vec<(u32, i64)>,
    #[serde(skip)]
    count: u32,
    #[serde(skip)]
    last: i64,
}

impl Times {
    /// Adds the next one. Only for times that are being made, not for read ones.
    pub(super) fn push_time(&mut self, time: Timestamp) {
        let micros = time.as_micros();
        if self.count == 0 {
            self.at = micros;
        } else if micros != self.last {
            self.later.push((self.count, micros.wrapping_sub(self.last)));
        }
        self.last = micros;
        self.count += 1;
    }

    /// Every one of them, and then the last one for ever.
    pub(super) fn iter(&self) -> impl Iterator<Item = Timestamp> + '_ {
        let mut later = self.later.iter().peekable();
        let mut time = self.at;
        (0u32..).map(move |index| {
            if let Some((_, more)) = later.next_if(|(which, _)| *which == index) {
                time = time.wrapping_add(*more);
            }
            Timestamp::from_micros(time)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_survive_their_coding() {
        let times = [5, 5, 7, 7, 3, i64::MAX, i64::MIN].map(Timestamp::from_micros);
        let mut coded = Times::default();
        times.iter().for_each(|time| coded.push_time(*time));
        let read: Times = serde_json::from_str(&serde_json::to_string(&coded).unwrap()).unwrap();
        assert_eq!(read.iter().take(times.len()).collect::<Vec<_>>(), times);
    }
}
