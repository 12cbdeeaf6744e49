//! Where a stream's reader is: the ids of its events, out and back in.

use std::fmt;
use std::str::FromStr;

/// The longest id that we make.
const MAX_EVENT_ID: usize = 80;

/// A place in a session's stream: the entry, the message among that entry's, and the last message of no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPosition {
    /// The entry that was shown last.
    pub seq: u64,
    /// Which of its messages.
    pub index: u32,
    /// The last message that no entry made, such as an answer; zero if there was none.
    pub answer: u64,
}

/// The id of an event in a session's stream: `{incarnation}.{seq}.{index}`, and `.{answer}` once there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The life of the log.
    pub incarnation: u32,
    /// Where in it.
    pub position: StreamPosition,
}

/// The text is no id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an event")]
pub struct InvalidEventId;

impl StreamPosition {
    /// Not beyond this one, as far as the log goes.
    pub fn covers(&self, seq: u64, index: u32) -> bool {
        (seq, index) <= (self.seq, self.index)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamPosition { seq, index, answer } = self.position;
        write!(f, "{}.{seq}.{index}", self.incarnation)?;
        if answer > 0 { write!(f, ".{answer}") } else { Ok(()) }
    }
}

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let mut parts = text.split('.').take(5);
        let position = |parts: &mut dyn Iterator<Item = &str>| {
            let (incarnation, seq, index) = (parts.next()?, parts.next()?, parts.next()?);
            let answer = parts.next().map_or(Some(0), parse_event_id_digits)?;
            let position =
                StreamPosition { seq: parse_event_id_digits(seq)?, index: parse_event_id_digits(index)?, answer };
            parts.next().is_none().then_some(Self { incarnation: parse_event_id_digits(incarnation)?, position })
        };
        (text.len() <= MAX_EVENT_ID).then(|| position(&mut parts)).flatten().ok_or(InvalidEventId)
    }
}

/// Digits only: no sign, no spaces.
pub fn parse_event_id_digits<T: FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ids_come_back_as_they_went() {
        for (seq, index, answer) in [(0, 0, 0), (12, 3, 0), (u64::MAX, u32::MAX, u64::MAX)] {
            let id = EventId { incarnation: 7, position: StreamPosition { seq, index, answer } };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!("1.2.3".parse::<EventId>().unwrap().position, StreamPosition { seq: 2, index: 3, answer: 0 });
    }

    #[test]
    fn what_is_no_id_is_never_read_as_zero() {
        let long = "1".repeat(10_000);
        for text in ["", "abc", "-1", "1", "1.2", "1.2.x", "+1.2.3", "1.2.3.4.5", " 1.2.3", "1..3", "1.2.3\n", &long] {
            assert_eq!(text.parse::<EventId>(), Err(InvalidEventId), "{text}");
        }
    }
}
