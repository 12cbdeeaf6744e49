//! How a byte stream carries messages: as lines, or as the frames of a WebSocket.

use std::time::Duration;

use gander_wire::jsonrpc::{Line, Lines, Outbox};

/// Cuts what arrives into messages, and makes bytes of those that leave.
pub trait Framing: Send {
    /// Takes in bytes that arrived.
    fn push_bytes(&mut self, bytes: &[u8]);

    /// The next thing that arrived whole.
    fn next_message(&mut self) -> Option<InboundMessage<'_>>;

    /// True if more may arrive though nothing of it is taken now.
    fn has_capacity(&self) -> bool {
        false
    }

    /// Answers what has arrived and is no message, past messages that nobody takes yet.
    fn answer_control_frames(&mut self) {}

    /// The last message of an input that ended.
    fn final_message(&mut self) -> Option<InboundMessage<'_>>;

    /// Moves everything that waits in the outbox to the end of `bytes`, and what the framing itself has to say.
    fn encode_outbox(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>);

    /// How often [`on_heartbeat`](Self::on_heartbeat) is due.
    const HEARTBEAT: Option<Duration>;

    /// Time has passed: asks whether the other side is still there, or gives it up.
    fn on_heartbeat(&mut self, stage: ConnectionStage);

    /// The server ends: says so, if there is a way.
    fn shut_down(&mut self);

    /// True if nothing more will be said or heard.
    fn is_closed(&self) -> bool;
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionStage {
    /// The client has not introduced itself.
    Strange,
    /// It has.
    Known,
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum InboundMessage<'a> {
    /// A message.
    Message(&'a [u8]),
    /// A message above the limit, dropped.
    TooLong,
}

impl Framing for Lines {
    const HEARTBEAT: Option<Duration> = None;

    fn push_bytes(&mut self, bytes: &[u8]) {
        Self::push(self, bytes);
    }

    fn next_message(&mut self) -> Option<InboundMessage<'_>> {
        self.next_line().map(InboundMessage::from)
    }

    fn final_message(&mut self) -> Option<InboundMessage<'_>> {
        self.finish().map(InboundMessage::from)
    }

    fn encode_outbox(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>) {
        outbox.drain_into(bytes);
    }

    fn on_heartbeat(&mut self, _stage: ConnectionStage) {}

    fn shut_down(&mut self) {}

    fn is_closed(&self) -> bool {
        false
    }
}

impl<'a> From<Line<'a>> for InboundMessage<'a> {
    fn from(line: Line<'a>) -> Self {
        match line {
            Line::Whole(line) => Self::Message(line),
            Line::TooLong => Self::TooLong,
        }
    }
}
