//! How a byte stream carries messages: as lines, or as the frames of a WebSocket.

use std::time::Duration;

use gander_wire::jsonrpc::{Line, Lines, Outbox};

/// Cuts what arrives into messages, and makes bytes of those that leave.
pub(crate) trait Framing: Send {
    /// Takes in bytes that arrived.
    fn push(&mut self, bytes: &[u8]);

    /// The next thing that arrived whole.
    fn next(&mut self) -> Option<Piece<'_>>;

    /// True if more may arrive though nothing of it is taken now.
    fn has_room(&self) -> bool {
        false
    }

    /// Answers what has arrived and is no message, past messages that nobody takes yet.
    fn glance(&mut self) {}

    /// The last message of an input that ended.
    fn last(&mut self) -> Option<Piece<'_>>;

    /// Moves everything that waits in the outbox to the end of `bytes`, and what the framing itself has to say.
    fn pack(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>);

    /// How often [`beat`](Self::beat) is due.
    const BEAT: Option<Duration>;

    /// Time has passed: asks whether the other side is still there, or gives it up.
    fn beat(&mut self, stage: Stage);

    /// The server ends: says so, if there is a way.
    fn end(&mut self);

    /// True if nothing more will be said or heard.
    fn is_over(&self) -> bool;
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The client has not introduced itself.
    Strange,
    /// It has.
    Known,
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A message.
    Message(&'a [u8]),
    /// A message above the limit, dropped.
    TooLong,
}

impl Framing for Lines {
    const BEAT: Option<Duration> = None;

    fn push(&mut self, bytes: &[u8]) {
        Self::push(self, bytes);
    }

    fn next(&mut self) -> Option<Piece<'_>> {
        self.next_line().map(Piece::from)
    }

    fn last(&mut self) -> Option<Piece<'_>> {
        self.finish().map(Piece::from)
    }

    fn pack(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>) {
        outbox.move_to(bytes);
    }

    fn beat(&mut self, _stage: Stage) {}

    fn end(&mut self) {}

    fn is_over(&self) -> bool {
        false
    }
}

impl<'a> From<Line<'a>> for Piece<'a> {
    fn from(line: Line<'a>) -> Self {
        match line {
            Line::Whole(line) => Self::Message(line),
            Line::TooLong => Self::TooLong,
        }
    }
}
