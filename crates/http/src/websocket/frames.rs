//! The frames of a WebSocket (RFC 6455), the server's side: strict, bounded, one message a text frame.

use std::time::Duration;

use gander_wire::jsonrpc::{MAX_LINE, Outbox};

use super::header::{FrameHeader, InvalidHeader, Opcode, unmask, write_frame_header};
use crate::message_framing::{ConnectionStage, Framing, InboundMessage};

/// Pieces of one message: more is an attack, not a message.
const MAX_FRAGMENTS: u32 = 65_536;
/// Above this an empty buffer is given back.
const KEEP_CAPACITY: usize = 16 * 1024;
/// So much may arrive while nothing is taken.
const MAX_UNTAKEN: usize = 64 * 1024;
/// The unit of all time limits.
const BEAT: Duration = Duration::from_secs(10);
/// Beats between two pings.
const PING_HEARTBEATS: u32 = 2;
/// Beats that a client may take to introduce itself, and to finish a message that it began.
const INITIALIZE_HEARTBEATS: u32 = 3;
const MESSAGE_HEARTBEATS: u32 = 6;
/// Beats of silence, pongs included, after which a client is gone.
const SILENCE_HEARTBEATS: u32 = 6;
/// Pings that a client may send within one beat.
const MAX_PINGS: u32 = 1_000;

/// Bytes of words beside a close's code: RFC 6455 has room for no more.
const MAX_CLOSE_REASON: usize = 123;

/// Why a WebSocket is closed, as its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
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
pub struct WebSocketFrames {
    buffer: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
    /// Up to here pings were answered before their turn.
    glanced: usize,
    /// What has arrived of a message in pieces.
    message: Vec<u8>,
    partial: Option<PartialMessage>,
    /// The message was handed out and can be forgotten.
    handed_out: bool,
    /// What the framing itself has to say.
    control: Vec<u8>,
    pong: Option<Vec<u8>>,
    closed: bool,
    /// Our close frame was handed on: nothing may follow it.
    close_encoded: bool,
    clock: HeartbeatCounters,
}

/// A message of which not all has arrived.
#[derive(Debug)]
struct PartialMessage {
    opcode: Opcode,
    fragments: u32,
}

/// What is counted from beat to beat.
#[derive(Debug, Default)]
struct HeartbeatCounters {
    heartbeats: u32,
    silent: u32,
    partial: u32,
    pings: u32,
}

impl Framing for WebSocketFrames {
    const HEARTBEAT: Option<Duration> = Some(BEAT);

    fn push_bytes(&mut self, bytes: &[u8]) {
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

    fn next_message(&mut self) -> Option<InboundMessage<'_>> {
        if std::mem::take(&mut self.handed_out) {
            self.message.clear();
            self.message.shrink_to(KEEP_CAPACITY);
        }
        while !self.closed {
            match self.read_frame() {
                Ok(Some(FrameOutcome::Frame(from, to))) => {
                    return Some(InboundMessage::Message(&self.buffer[from..to]));
                }
                Ok(Some(FrameOutcome::Message)) => {
                    self.handed_out = true;
                    return Some(InboundMessage::Message(&self.message));
                }
                Ok(Some(FrameOutcome::Nothing)) => {}
                Ok(None) => return None,
                Err(why) => self.close_with_code(why),
            }
        }
        None
    }

    fn has_capacity(&self) -> bool {
        self.buffer.len() - self.start < MAX_UNTAKEN
    }

    fn answer_control_frames(&mut self) {
        let mut at = self.glanced.max(self.start);
        while let Some(Ok(Some((header, length)))) = self.buffer.get(at..).map(FrameHeader::parse) {
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
    fn final_message(&mut self) -> Option<InboundMessage<'_>> {
        None
    }

    fn encode_outbox(&mut self, outbox: &mut Outbox, bytes: &mut Vec<u8>) {
        // An answer that was ready when the server began to end, or the client to leave, still goes before our close frame.
        if !self.close_encoded {
            for (_, message) in outbox.messages() {
                write_frame_header(bytes, Opcode::Text, message.len());
                bytes.extend_from_slice(message);
            }
        }
        outbox.clear();
        if let Some(payload) = self.pong.take() {
            write_frame_header(bytes, Opcode::Pong, payload.len());
            bytes.extend_from_slice(&payload);
        }
        bytes.append(&mut self.control);
        self.close_encoded = self.closed;
    }

    fn on_heartbeat(&mut self, stage: ConnectionStage) {
        let clock = &mut self.clock;
        clock.heartbeats += 1;
        clock.silent += 1;
        clock.partial = if self.partial.is_some() { clock.partial + 1 } else { 0 };
        let pings = std::mem::take(&mut clock.pings);
        if clock.silent > SILENCE_HEARTBEATS {
            self.close_with_code(CloseCode::Gone);
        } else if pings > MAX_PINGS
            || clock.partial > MESSAGE_HEARTBEATS
            || (stage == ConnectionStage::Strange && clock.heartbeats >= INITIALIZE_HEARTBEATS)
        {
            self.close_with_code(CloseCode::Policy);
        } else if clock.heartbeats.is_multiple_of(PING_HEARTBEATS) {
            write_frame_header(&mut self.control, Opcode::Ping, 0);
        }
    }

    fn shut_down(&mut self) {
        self.close_with_code(CloseCode::Restart);
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

/// What one frame completed.
enum FrameOutcome {
    /// A message of one frame: its place in the buffer.
    Frame(usize, usize),
    /// A message of several.
    Message,
    /// No message.
    Nothing,
}

impl WebSocketFrames {
    /// A text message, on its way out with the next [`encode_outbox`](Framing::encode_outbox).
    pub(super) fn send_text(&mut self, message: &[u8]) {
        if !self.closed {
            write_frame_header(&mut self.control, Opcode::Text, message.len());
            self.control.extend_from_slice(message);
        }
    }

    /// Says why, in words too, and hears nothing more.
    pub(super) fn close_with_reason(&mut self, why: CloseCode, reason: &str) {
        let reason = &reason.as_bytes()[..reason.floor_char_boundary(MAX_CLOSE_REASON)];
        self.send_close(&[&(why as u16).to_be_bytes(), reason].concat());
    }

    /// Says why and hears nothing more.
    pub(super) fn close_with_code(&mut self, why: CloseCode) {
        self.send_close(&(why as u16).to_be_bytes());
    }

    fn send_close(&mut self, payload: &[u8]) {
        if !std::mem::replace(&mut self.closed, true) {
            write_frame_header(&mut self.control, Opcode::Close, payload.len());
            self.control.extend_from_slice(payload);
        }
    }

    /// Takes in one frame, if a whole one has arrived.
    fn read_frame(&mut self) -> Result<Option<FrameOutcome>, CloseCode> {
        let rest = &self.buffer[self.start..];
        let Some((header, length)) = FrameHeader::parse(rest).map_err(|InvalidHeader| CloseCode::Protocol)? else {
            return Ok(None);
        };
        // Refused by what it announces, so that a large one is never held.
        if self.message.len() + header.payload > MAX_LINE {
            return Err(CloseCode::TooLarge);
        }
        if !self.is_expected_frame(&header) {
            return Err(CloseCode::Protocol);
        }
        if rest.len() < length + header.payload {
            return Ok(None);
        }
        let from = self.start + length;
        let to = from + header.payload;
        self.start = to;
        unmask(&mut self.buffer[from..to], header.mask);
        match header.opcode {
            Opcode::Text | Opcode::Binary | Opcode::Continuation => self.handle_data(&header, from, to),
            Opcode::Ping if to <= self.glanced => Ok(Some(FrameOutcome::Nothing)), // it was answered before its turn
            Opcode::Ping => {
                self.clock.pings += 1;
                self.pong = Some(self.buffer[from..to].to_vec()); // only the latest is answered
                Ok(Some(FrameOutcome::Nothing))
            }
            Opcode::Pong => Ok(Some(FrameOutcome::Nothing)),
            Opcode::Close => self.handle_close(from, to),
        }
    }

    /// A message in pieces is continued before another begins; only control frames come between.
    fn is_expected_frame(&self, header: &FrameHeader) -> bool {
        match header.opcode {
            Opcode::Continuation => self.partial.is_some(),
            Opcode::Text | Opcode::Binary => self.partial.is_none(),
            Opcode::Close | Opcode::Ping | Opcode::Pong => header.fin,
        }
    }

    fn handle_data(&mut self, header: &FrameHeader, from: usize, to: usize) -> Result<Option<FrameOutcome>, CloseCode> {
        let partial = self.partial.take();
        let opcode = partial.as_ref().map_or(header.opcode, |partial| partial.opcode);
        if header.fin && partial.is_none() {
            return validate_frame_message(opcode, &self.buffer[from..to], FrameOutcome::Frame(from, to)).map(Some);
        }
        if matches!(opcode, Opcode::Text | Opcode::Binary) {
            self.message.extend_from_slice(&self.buffer[from..to]);
        }
        if header.fin {
            let outcome = validate_frame_message(opcode, &self.message, FrameOutcome::Message)?;
            if matches!(outcome, FrameOutcome::Nothing) {
                self.message.clear();
            }
            return Ok(Some(outcome));
        }
        let fragments = partial.map_or(1, |partial| partial.fragments + 1);
        if fragments > MAX_FRAGMENTS {
            return Err(CloseCode::TooLarge);
        }
        self.partial = Some(PartialMessage { opcode, fragments });
        Ok(Some(FrameOutcome::Nothing))
    }

    /// The other side says goodbye: so do we, with its own code.
    fn handle_close(&mut self, from: usize, to: usize) -> Result<Option<FrameOutcome>, CloseCode> {
        let payload = self.buffer[from..to].to_vec();
        let fits = match payload.split_first_chunk::<2>() {
            Some((code, reason)) => {
                is_valid_close_code(u16::from_be_bytes(*code)) && std::str::from_utf8(reason).is_ok()
            }
            None => payload.is_empty(),
        };
        if !fits {
            return Err(CloseCode::Protocol);
        }
        self.send_close(&payload[..payload.len().min(2)]);
        Ok(Some(FrameOutcome::Nothing))
    }
}

/// Text must be UTF-8. Pages that use use-acp (0.2.6) send their text as binary messages; any other binary message means
/// nothing here.
fn validate_frame_message(opcode: Opcode, message: &[u8], whole: FrameOutcome) -> Result<FrameOutcome, CloseCode> {
    match opcode {
        Opcode::Text if std::str::from_utf8(message).is_ok() => Ok(whole),
        Opcode::Text => Err(CloseCode::NotUtf8),
        Opcode::Binary if std::str::from_utf8(message).is_ok() => Ok(whole),
        Opcode::Binary | Opcode::Continuation | Opcode::Close | Opcode::Ping | Opcode::Pong => {
            Ok(FrameOutcome::Nothing)
        }
    }
}

/// Codes that may travel in a close frame.
fn is_valid_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
