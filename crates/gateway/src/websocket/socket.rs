//! One WebSocket, message by message, for protocols that need no more of it.

use std::io;
use std::time::Duration;

use gander_wire::jsonrpc::Outbox;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Interval, MissedTickBehavior};

use super::frames::{CloseCode, WebSocketFrames};
use crate::message_framing::{ConnectionStage, Framing, InboundMessage};

/// What one read takes at most.
const READ_SIZE: usize = 4 * 1024;
/// How long the other side may take to say goodbye too.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What happened on a WebSocket.
pub(crate) enum SocketEvent {
    /// A message came.
    Message(Vec<u8>),
    /// All that waited is written.
    Written,
}

/// A WebSocket whose handshake is over.
pub(crate) struct WebSocket<S> {
    stream: S,
    frames: WebSocketFrames,
    heartbeats: Interval,
    unsent: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> WebSocket<S> {
    pub(crate) fn new(stream: S) -> Self {
        let beat = WebSocketFrames::HEARTBEAT.unwrap_or(CLOSE_TIMEOUT);
        let mut heartbeats = tokio::time::interval_at(tokio::time::Instant::now() + beat, beat);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, frames: WebSocketFrames::default(), heartbeats, unsent: Vec::new() }
    }

    /// Writes what waits, else gives the next message; `None` once the other side is gone. Nothing is lost if it is
    /// dropped before its end.
    pub(crate) async fn next_event(&mut self) -> Option<SocketEvent> {
        loop {
            match self.frames.next_message() {
                Some(InboundMessage::Message(message)) => return Some(SocketEvent::Message(message.to_vec())),
                Some(InboundMessage::TooLong) | None => {}
            }
            self.encode_pending();
            let waited = !self.unsent.is_empty();
            self.write_pending().await.ok()?;
            if self.frames.is_closed() {
                return None;
            }
            if waited {
                return Some(SocketEvent::Written);
            }
            let mut read = [0; READ_SIZE];
            tokio::select! {
                length = self.stream.read(&mut read) => match length {
                    Ok(0) | Err(_) => return None,
                    Ok(length) => self.frames.push_bytes(&read[..length]),
                },
                _ = self.heartbeats.tick() => self.frames.on_heartbeat(ConnectionStage::Known),
            }
        }
    }

    /// A message on its way out: [`next_event`](Self::next_event) writes it.
    pub(crate) fn send_text(&mut self, message: &[u8]) {
        self.frames.send_text(message);
        self.encode_pending();
    }

    /// True if nothing waits to be written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Says why it ends, and waits for the other side to hear it.
    pub(crate) async fn close(mut self, why: CloseCode, reason: &str) {
        self.frames.close_with_reason(why, reason);
        self.encode_pending();
        let goodbye = async {
            self.write_pending().await?;
            let mut rest = [0; READ_SIZE];
            while self.stream.read(&mut rest).await? > 0 {}
            self.stream.shutdown().await
        };
        match tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a WebSocket broke before its end"),
        }
    }

    fn encode_pending(&mut self) {
        self.frames.encode_outbox(&mut Outbox::default(), &mut self.unsent);
    }

    async fn write_pending(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let length = self.stream.write(&self.unsent).await?;
            if length == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.unsent.drain(..length);
        }
        self.stream.flush().await
    }
}
