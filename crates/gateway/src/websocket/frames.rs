//! The frames of a WebSocket (RFC 6455), the server's side: strict, bounded, one message a text frame.

use std::time::Duration;

use gander_wire::jsonrpc::{MAX_LINE, Outbox};

use super::header::{Bad, Header, Opcode, unmask, write_header};
use crate::message_framing::{Framing, Piece, Stage};

/// Pieces of one message: more is an attack, not a message.
const MAX_FRAGMENTS: u32 = 65_536;
/// Above this an empty buffer is given back.
const KEEP_CAPACITY: usize = 16 * 1024;
/// So much may arrive while nothing is taken.
const HELD: usize = 64 * 1024;
/// The unit of all time limits.
const BEAT: Duration = Duration::from_secs(10);
/// Beats between two pings.
const PING_EVERY: u32 = 2;
/// Beats that a client may take to introduce itself, and to finish a message that it began.
const INTRODUCTION: u32 = 3;
const WHOLE_MESSAGE: u32 = 6;
/// Beats of silence, pongs included, after which a client is gone.
const SILENCE: u32 = 6;
/// Pings that a client may send within one beat.
const MAX_PINGS: u32 = 1_000;

/// Bytes of words beside a close's code: RFC 6455 has room for no more.
const LONGEST_REASON: usize = 123;

/// Why a WebSocket is closed, as its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    Normal = 1000,
    Gone = 1001,
    Protocol = 1002,
    NotUtf8 = 1007,
    Policy = 1008,
    TooLarge = 1009,
    Failed = 1011,
    Restart = 1012,
}

/// The frames of one connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
    /// Up to here pings were answered before their turn.
    glanced: usize,
    /// What has arrived of a message in pieces.
    message: Vec<u8>,
    partial: Option<Partial>,
    /// The message was handed out and can be forgotten.
    handed_out: bool,
    /// What the framing itself has to say.
    control: Vec<u8>,
    pong: Option<Vec<u8>>,
    closed: bool,
    clock: Beats,
}

/// A message of which not all has arrived.
#[derive(Debug)]
struct Partial {
    opcode: Opcode,
    fragments: u32,
}

/// What is counted from beat to beat.
#[derive(Debug, Default)]
struct Beats {
    beats: u32,
    silent: u32,
    partial: u32,
    pings: u32,
}

impl Framing for Frames {
    const BEAT: Option<Duration> = Some(BEAT);

    fn push(&mut self, bytes: &[u8]) {
        self.clock.silent = 0;
        if self.closed {
            return; // data after a close means nothing
        }
        self.buffer.drain(..self.start);
        self.glanced = self.glanced.saturating_sub(self.start);
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(KEEP_CAPACITY);
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Piece<'_>> {
        if std::mem::take(&mut self.handed_out) {
            self.message.clear();
            self.message.shrink_to(KEEP_CAPACITY);
        }
        while !self.closed {
            match self.frame() {
                Ok(Some(Whole::Frame(from, to))) => return Some(Piece::Message(&self.buffer[from..to])),
                Ok(Some(Whole::Message)) => {
                    self.handed_out = true;
                    return Some(Piece::Message(&self.message));
                }
                Ok(Some(Whole::Nothing)) => {}
                Ok(None) => return None,
                Err(why) => self.close(why),
            }
        }
        None
    }

    fn has_room(&self) -> bool {
        self.buffer.len() - self.start < HELD
    }

    fn glance(&mut self) {
        let mut at = self.glanced.max(self.start);
        while let Some(Ok(Some((header, length)))) = self.buffer.get(at..).map(Header::read) {
            let (from, to) = (at + length, at + length + header.payload);
            let Some(payload) = self.buffer.get(from..to) else { break };
            if header.opcode == Opcode::Ping && header.fin {
                let mut payload = payload.to_vec();
                unmask(&mut payload, header.mask);
                self.clock.pings += 1;
                self.pong = Some(payload);
            }
            at = to;
        }
        self.glanced = at;
    }

    /// A WebSocket that ends without a close leaves no message behind.
    fn last(&mut self) -> Option<Piece<'_>> {
        None
    }

    fn pack(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>) {
        if !self.closed {
            for (_, message) in outbox.messages() {
                write_header(bytes, Opcode::Text, message.len());
                bytes.extend_from_slice(message);
            }
        }
        outbox.clear();
        if let Some(payload) = self.pong.take() {
            write_header(bytes, Opcode::Pong, payload.len());
            bytes.extend_from_slice(&payload);
        }
        bytes.append(&mut self.control);
    }

    fn beat(&mut self, stage: Stage) {
        let clock = &mut self.clock;
        clock.beats += 1;
        clock.silent += 1;
        clock.partial = if self.partial.is_some() { clock.partial + 1 } else { 0 };
        let pings = std::mem::take(&mut clock.pings);
        if clock.silent > SILENCE {
            self.close(Close::Gone);
        } else if pings > MAX_PINGS
            || clock.partial > WHOLE_MESSAGE
            || (stage == Stage::Strange && clock.beats >= INTRODUCTION)
        {
            self.close(Close::Policy);
        } else if clock.beats.is_multiple_of(PING_EVERY) {
            write_header(&mut self.control, Opcode::Ping, 0);
        }
    }

    fn end(&mut self) {
        self.close(Close::Restart);
    }

    fn is_over(&self) -> bool {
        self.closed
    }
}

/// What one frame completed.
enum Whole {
    /// A message of one frame: its place in the buffer.
    Frame(usize, usize),
    /// A message of several.
    Message,
    /// No message.
    Nothing,
}

impl Frames {
    /// A text message, on its way out with the next [`pack`](Framing::pack).
    pub(super) fn say(&mut self, message: &[u8]) {
        if !self.closed {
            write_header(&mut self.control, Opcode::Text, message.len());
            self.control.extend_from_slice(message);
        }
    }

    /// Says why, in words too, and hears nothing more.
    pub(super) fn close_saying(&mut self, why: Close, reason: &str) {
        let reason = &reason.as_bytes()[..reason.floor_char_boundary(LONGEST_REASON)];
        self.close_with(&[&(why as u16).to_be_bytes(), reason].concat());
    }

    /// Says why and hears nothing more.
    pub(super) fn close(&mut self, why: Close) {
        self.close_with(&(why as u16).to_be_bytes());
    }

    fn close_with(&mut self, payload: &[u8]) {
        if !std::mem::replace(&mut self.closed, true) {
            write_header(&mut self.control, Opcode::Close, payload.len());
            self.control.extend_from_slice(payload);
        }
    }

    /// Takes in one frame, if a whole one has arrived.
    fn frame(&mut self) -> Result<Option<Whole>, Close> {
        let rest = &self.buffer[self.start..];
        let Some((header, length)) = Header::read(rest).map_err(|Bad| Close::Protocol)? else { return Ok(None) };
        // Refused by what it announces, so that a large one is never held.
        if self.message.len() + header.payload > MAX_LINE {
            return Err(Close::TooLarge);
        }
        if !self.is_due(&header) {
            return Err(Close::Protocol);
        }
        if rest.len() < length + header.payload {
            return Ok(None);
        }
        let from = self.start + length;
        let to = from + header.payload;
        self.start = to;
        unmask(&mut self.buffer[from..to], header.mask);
        match header.opcode {
            Opcode::Text | Opcode::Binary | Opcode::Continuation => self.data(&header, from, to),
            Opcode::Ping if to <= self.glanced => Ok(Some(Whole::Nothing)), // it was answered before its turn
            Opcode::Ping => {
                self.clock.pings += 1;
                self.pong = Some(self.buffer[from..to].to_vec()); // only the latest is answered
                Ok(Some(Whole::Nothing))
            }
            Opcode::Pong => Ok(Some(Whole::Nothing)),
            Opcode::Close => self.closing(from, to),
        }
    }

    /// A message in pieces is continued before another begins; only control frames come between.
    fn is_due(&self, header: &Header) -> bool {
        match header.opcode {
            Opcode::Continuation => self.partial.is_some(),
            Opcode::Text | Opcode::Binary => self.partial.is_none(),
            Opcode::Close | Opcode::Ping | Opcode::Pong => header.fin,
        }
    }

    fn data(&mut self, header: &Header, from: usize, to: usize) -> Result<Option<Whole>, Close> {
        let partial = self.partial.take();
        let opcode = partial.as_ref().map_or(header.opcode, |partial| partial.opcode);
        if header.fin && partial.is_none() {
            return whole(opcode, &self.buffer[from..to], Whole::Frame(from, to)).map(Some);
        }
        if opcode == Opcode::Text {
            self.message.extend_from_slice(&self.buffer[from..to]);
        }
        if header.fin {
            return whole(opcode, &self.message, Whole::Message).map(Some);
        }
        let fragments = partial.map_or(1, |partial| partial.fragments + 1);
        if fragments > MAX_FRAGMENTS {
            return Err(Close::TooLarge);
        }
        self.partial = Some(Partial { opcode, fragments });
        Ok(Some(Whole::Nothing))
    }

    /// The other side says goodbye: so do we, with its own code.
    fn closing(&mut self, from: usize, to: usize) -> Result<Option<Whole>, Close> {
        let payload = self.buffer[from..to].to_vec();
        let fits = match payload.split_first_chunk::<2>() {
            Some((code, reason)) => is_code(u16::from_be_bytes(*code)) && std::str::from_utf8(reason).is_ok(),
            None => payload.is_empty(),
        };
        if !fits {
            return Err(Close::Protocol);
        }
        self.close_with(&payload[..payload.len().min(2)]);
        Ok(Some(Whole::Nothing))
    }
}

/// Text must be UTF-8; binary messages mean nothing here.
fn whole(opcode: Opcode, message: &[u8], whole: Whole) -> Result<Whole, Close> {
    match opcode {
        Opcode::Text if std::str::from_utf8(message).is_ok() => Ok(whole),
        Opcode::Text => Err(Close::NotUtf8),
        Opcode::Binary | Opcode::Continuation | Opcode::Close | Opcode::Ping | Opcode::Pong => Ok(Whole::Nothing),
    }
}

/// Codes that may travel in a close frame.
fn is_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
