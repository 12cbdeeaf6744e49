//! When a few deltas are stored: at once if nobody has seen one for a while, else together with those of other sessions.
//!
//! Models send their words one by one. A commit for each of them costs far more than the word itself, and a reader does
//! not see a delay of a few milliseconds; so the deltas of a stream that flows wait for the next tick of a clock that all
//! sessions share, and one commit takes them all.

use std::time::Duration;

use tokio::time::Instant;

/// Commits of streams that flow are so far apart: the longest time that a delta waits.
const TICK: Duration = Duration::from_millis(10);

/// A stream that said nothing for so long is quiet: its next delta does not wait.
const QUIET_AFTER: Duration = Duration::from_millis(100);

/// Ticks at the same moments for every session of a hub.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitClock {
    started: Instant,
}

/// What a session knows of its stream.
#[derive(Debug)]
pub(super) struct Gathering {
    clock: CommitClock,
    /// When deltas were stored last.
    streamed_at: Option<Instant>,
    /// What waits now is stored then.
    until: Option<Instant>,
}

impl CommitClock {
    pub(super) fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The first tick after this time.
    fn next_tick(self, now: Instant) -> Instant {
        let past = now.saturating_duration_since(self.started).as_micros() % TICK.as_micros();
        now + TICK - Duration::from_micros(past as u64)
    }
}

impl Gathering {
    pub(super) fn new(clock: CommitClock) -> Self {
        Self { clock, streamed_at: None, until: None }
    }

    /// When what waits is stored; none if nothing waits for a tick.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// True if a few deltas must wait. They may go once this was false.
    pub(super) fn must_wait(&mut self, now: Instant) -> bool {
        let flows = self.streamed_at.is_some_and(|at| now.saturating_duration_since(at) < QUIET_AFTER);
        let until = *self.until.get_or_insert_with(|| if flows { self.clock.next_tick(now) } else { now });
        if now < until {
            return true;
        }
        self.note_deltas_stored(now);
        false
    }

    /// Deltas are stored now, with whatever else there is.
    pub(super) fn note_deltas_stored(&mut self, now: Instant) {
        self.until = None;
        self.streamed_at = Some(now);
    }

    /// Nothing waits any longer: it is stored with something that cannot wait.
    pub(super) fn end_wait(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_delta_goes_at_once_and_those_after_it_at_the_next_tick() {
        let clock = CommitClock::start();
        let (mut one, mut other) = (Gathering::new(clock), Gathering::new(clock));
        let at = |ms: u32| clock.started + MS * ms;
        assert!(!one.must_wait(at(3)));
        assert!(!other.must_wait(at(4)));
        assert!(one.must_wait(at(5)));
        assert!(other.must_wait(at(9)));
        assert_eq!([one.until(), other.until()], [Some(at(10)), Some(at(10))]);
        assert!(one.must_wait(at(9)));
        assert!(!one.must_wait(at(10)));
        assert_eq!(one.until(), None);
    }

    #[test]
    fn a_stream_that_was_quiet_begins_anew() {
        let clock = CommitClock::start();
        let mut stream = Gathering::new(clock);
        let at = |ms: u32| clock.started + MS * ms;
        assert!(!stream.must_wait(at(1)));
        assert!(stream.must_wait(at(100)));
        stream.end_wait();
        assert!(!stream.must_wait(at(101)));
        stream.note_deltas_stored(at(150));
        assert!(stream.must_wait(at(151)));
    }
}
