//! One WebSocket, message by message, for protocols that need no more of it.

use std::io;
use std::time::Duration;

use gander_wire::jsonrpc::Outbox;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Interval, MissedTickBehavior};

use super::frames::{Close, Frames};
use crate::message_framing::{Framing, Piece, Stage};

/// What one read takes at most.
const READ: usize = 4 * 1024;
/// How long the other side may take to say goodbye too.
const GOODBYE: Duration = Duration::from_secs(2);

/// What happened on a WebSocket.
pub(crate) enum Step {
    /// A message came.
    Message(Vec<u8>),
    /// All that waited is written.
    Written,
}

/// A WebSocket whose handshake is over.
pub(crate) struct Socket<S> {
    stream: S,
    frames: Frames,
    beats: Interval,
    unsent: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket<S> {
    pub(crate) fn new(stream: S) -> Self {
        let beat = Frames::BEAT.unwrap_or(GOODBYE);
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, frames: Frames::default(), beats, unsent: Vec::new() }
    }

    /// Writes what waits, else gives the next message; `None` once the other side is gone. Nothing is lost if it is
    /// dropped before its end.
    pub(crate) async fn next(&mut self) -> Option<Step> {
        loop {
            match self.frames.next() {
                Some(Piece::Message(message)) => return Some(Step::Message(message.to_vec())),
                Some(Piece::TooLong) | None => {}
            }
            self.pack();
            let waited = !self.unsent.is_empty();
            self.write().await.ok()?;
            if self.frames.is_over() {
                return None;
            }
            if waited {
                return Some(Step::Written);
            }
            let mut read = [0; READ];
            tokio::select! {
                length = self.stream.read(&mut read) => match length {
                    Ok(0) | Err(_) => return None,
                    Ok(length) => self.frames.push(&read[..length]),
                },
                _ = self.beats.tick() => self.frames.beat(Stage::Known),
            }
        }
    }

    /// A message on its way out: [`next`](Self::next) writes it.
    pub(crate) fn say(&mut self, message: &[u8]) {
        self.frames.say(message);
        self.pack();
    }

    /// True if nothing waits to be written.
    pub(crate) fn is_idle(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Says why it ends, and waits for the other side to hear it.
    pub(crate) async fn close(mut self, why: Close, reason: &str) {
        self.frames.close_saying(why, reason);
        self.pack();
        let goodbye = async {
            self.write().await?;
            let mut rest = [0; READ];
            while self.stream.read(&mut rest).await? > 0 {}
            self.stream.shutdown().await
        };
        match tokio::time::timeout(GOODBYE, goodbye).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a WebSocket broke before its end"),
        }
    }

    fn pack(&mut self) {
        self.frames.pack(&mut Outbox::default(), &mut self.unsent);
    }

    async fn write(&mut self) -> io::Result<()> {
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
