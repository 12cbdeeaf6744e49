//! Drives a client over a pair of byte streams, whatever frames its messages.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use gander_store::clock::SystemIds;
use gander_wire::jsonrpc::Outbox;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{AT_ONCE, Client, UNSENT};
use crate::message_framing::{Framing, Piece, Stage};

/// How long answers under way are waited for when the client has said its last word.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What one read takes at most.
const READ: usize = 8 * 1024;

/// While more answers than this wait to be written, no request is read. Far more than [`UNSENT`]: a client that sends
/// many requests before it reads the first answer must not wait for us while we wait for it.
const UNSENT_ANSWERS: usize = 4 * 1024 * 1024;

/// Above this a drained buffer is given back.
const KEEP_CAPACITY: usize = 32 * 1024;

/// How a server tells its clients that it ends.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// No new work: clients that wait for nothing are let go.
    pub soon: CancellationToken,
    /// All are let go.
    pub now: CancellationToken,
}

impl Client {
    /// Serves the client until it is gone. Its runs go on.
    pub(super) async fn drive<F, R, W>(mut self, mut framing: F, mut reader: R, mut writer: W, ending: Ending)
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let served = self.exchange(&mut framing, &mut reader, &mut writer, ending).await;
        let ended = match served {
            Ok(()) => self.finish(&mut framing, &mut writer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "client connection broke");
        }
        self.leave().await;
    }

    /// Reads and writes until the input ends, the framing is over or the server ends.
    async fn exchange<F, R, W>(
        &mut self,
        framing: &mut F,
        reader: &mut R,
        writer: &mut W,
        ending: Ending,
    ) -> io::Result<()>
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (mut sending, mut beats) = (Sending::default(), F::BEAT.map(beats));
        let (mut ends, mut held, mut resume) = (false, false, Instant::now());
        loop {
            self.settle().await;
            if ends && !self.connection.is_busy() {
                framing.end();
            }
            sending.load(framing, self.connection.outbox());
            if framing.is_over() {
                return sending.finish(writer).await;
            }
            let unsent = sending.len() + self.connection.outbox().bytes().len();
            let (free, listens) = (unsent < UNSENT, unsent < UNSENT_ANSWERS && self.work.len() < AT_ONCE);
            let paused = resume > Instant::now();
            if listens && !paused && std::mem::take(&mut held) {
                resume = Instant::now() + self.receive(framing).await;
                continue;
            }
            tokio::select! {
                wrote = writer.write(sending.rest()), if !sending.is_empty() => sending.wrote(wrote?)?,
                Some(news) = self.follows.next(), if free => self.hear(news),
                Some(done) = self.work.join_next() => self.finished(done),
                Ok(()) = self.relisted.changed(), if free => self.relist(),
                Some(ask) = self.host_asks.recv(), if free => self.asks.send(ask, &mut self.connection),
                call = self.asks.given_up() => self.connection.cancel_host(call),
                () = ending.soon.cancelled(), if !ends => ends = true,
                () = ending.now.cancelled() => {
                    framing.end();
                    sending.load(framing, self.connection.outbox());
                    return sending.finish(writer).await;
                }
                () = beat(&mut beats) => framing.beat(self.stage()),
                () = tokio::time::sleep_until(resume), if paused => {}
                read = read(reader, framing), if (listens && !paused) || framing.has_room() => {
                    if read? == 0 {
                        self.receive(framing).await;
                        return self.last_word(framing, sending, writer).await;
                    }
                    if listens && !paused {
                        resume = Instant::now() + self.receive(framing).await;
                    } else {
                        framing.glance();
                        held = true;
                    }
                }
            }
        }
    }

    /// Takes in whole messages, each with all that follows from it, so that commands keep their order. Gives how long
    /// to wait before more is read.
    async fn receive(&mut self, framing: &mut impl Framing) -> Duration {
        let mut wait = Duration::ZERO;
        while let Some(piece) = framing.next() {
            wait = self.pace.as_ref().map_or(wait, |pace| pace());
            self.take_in(&piece);
            self.settle().await;
        }
        wait
    }

    fn take_in(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Message(message) => self.connection.receive(message, &mut SystemIds),
            Piece::TooLong => self.connection.refuse_oversized(),
        }
    }

    /// The input ended, perhaps without an end of its last message.
    async fn last_word<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        mut sending: Sending,
        writer: &mut W,
    ) -> io::Result<()> {
        if let Some(piece) = framing.last() {
            self.take_in(&piece);
        }
        sending.finish(writer).await
    }

    fn stage(&self) -> Stage {
        if self.connection.abilities().is_some() { Stage::Known } else { Stage::Strange }
    }

    /// The client says no more, but it may still read: answers under way are given.
    async fn finish<W: AsyncWrite + Unpin>(&mut self, framing: &mut impl Framing, writer: &mut W) -> io::Result<()> {
        let deadline = Instant::now() + LAST_ANSWERS;
        let mut sending = Sending::default();
        loop {
            self.settle().await;
            sending.load(framing, self.connection.outbox());
            sending.finish(writer).await?;
            if self.work.is_empty() || framing.is_over() {
                return writer.shutdown().await;
            }
            match tokio::time::timeout_at(deadline, self.work.join_next()).await {
                Ok(Some(done)) => self.finished(done),
                Ok(None) => {}
                Err(_) => return writer.shutdown().await,
            }
        }
    }
}

/// Framed bytes on their way out.
#[derive(Default)]
struct Sending {
    bytes: Vec<u8>,
    sent: usize,
}

impl Sending {
    /// Takes what waits, once everything older is written.
    fn load(&mut self, framing: &mut impl Framing, outbox: &mut Outbox) {
        if self.is_empty() {
            framing.pack(outbox, &mut self.bytes);
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    fn wrote(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.sent += bytes;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_CAPACITY);
            self.sent = 0;
        }
        Ok(())
    }

    /// Writes all of it, unless nobody reads.
    async fn finish<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<()> {
        let write = async {
            writer.write_all(self.rest()).await?;
            writer.flush().await
        };
        tokio::time::timeout(LAST_ANSWERS, write).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        *self = Self::default();
        Ok(())
    }
}

/// Reads what is there into the framing; gives how much it was. Only while something is read is there a buffer for it:
/// most clients are silent most of the time.
async fn read<F: Framing, R: AsyncRead + Unpin>(reader: &mut R, framing: &mut F) -> io::Result<usize> {
    std::future::poll_fn(|context| {
        let mut bytes = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        std::task::ready!(Pin::new(&mut *reader).poll_read(context, &mut buffer))?;
        framing.push(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
    .await
}

fn beats(every: Duration) -> Interval {
    let mut beats = tokio::time::interval_at(Instant::now() + every, every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
    beats
}

async fn beat(beats: &mut Option<Interval>) {
    match beats {
        Some(beats) => drop(beats.tick().await),
        None => std::future::pending().await,
    }
}
