//! One WebSocket, message by message, for protocols that need no more of it.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Interval;

use super::frames::{CloseCode, WebSocketFrames};
use crate::message_framing::{ConnectionStage, Framing, InboundMessage};
use crate::outgoing_bytes::{OutgoingBytes, heartbeat_interval, next_heartbeat, read_into_framing};

/// What one read takes at most once nothing that arrives matters.
const DISCARD_SIZE: usize = 4 * 1024;
/// How long the other side may take to say goodbye too.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What happened on a WebSocket.
pub enum SocketEvent {
    /// A message came.
    Message(Vec<u8>),
    /// All that waited is written.
    Written,
}

/// A WebSocket whose handshake is over.
pub struct WebSocket<S> {
    stream: S,
    frames: WebSocketFrames,
    heartbeats: Option<Interval>,
    outgoing: OutgoingBytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> WebSocket<S> {
    pub fn new(stream: S) -> Self {
        let heartbeats = WebSocketFrames::HEARTBEAT.map(heartbeat_interval);
        Self { stream, frames: WebSocketFrames::default(), heartbeats, outgoing: OutgoingBytes::default() }
    }

    /// Writes what waits, else gives the next message; `None` once the other side is gone. Nothing is lost if it is
    /// dropped before its end.
    pub async fn next_event(&mut self) -> Option<SocketEvent> {
        loop {
            match self.frames.next_message() {
                Some(InboundMessage::Message(message)) => return Some(SocketEvent::Message(message.to_vec())),
                Some(InboundMessage::TooLong) | None => {}
            }
            self.outgoing.load_frames(&mut self.frames);
            let waited = !self.outgoing.is_empty();
            self.write_pending().await.ok()?;
            if self.frames.is_closed() {
                return None;
            }
            if waited {
                return Some(SocketEvent::Written);
            }
            tokio::select! {
                length = read_into_framing(&mut self.stream, &mut self.frames) => match length {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                },
                () = next_heartbeat(&mut self.heartbeats) => self.frames.on_heartbeat(ConnectionStage::Known),
            }
        }
    }

    /// A message on its way out: [`next_event`](Self::next_event) writes it.
    pub fn send_text(&mut self, message: &[u8]) {
        self.frames.send_text(message);
        self.outgoing.load_frames(&mut self.frames);
    }

    /// True if nothing waits to be written.
    pub fn is_flushed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Says why it ends, and waits for the other side to hear it.
    pub async fn close(mut self, why: CloseCode, reason: &str) {
        self.frames.close_with_reason(why, reason);
        self.outgoing.load_frames(&mut self.frames);
        let goodbye = async {
            self.write_pending().await?;
            let mut rest = [0; DISCARD_SIZE];
            while self.stream.read(&mut rest).await? > 0 {}
            self.stream.shutdown().await
        };
        match tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a WebSocket broke before its end"),
        }
    }

    async fn write_pending(&mut self) -> io::Result<()> {
        while !self.outgoing.is_done() {
            self.outgoing.advance(&mut self.stream).await?;
        }
        Ok(())
    }
}
