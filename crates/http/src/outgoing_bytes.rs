//! Reads framed messages from a byte stream and writes them to one: the IO of every line-delimited connection and WebSocket.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use gander_wire::jsonrpc::Outbox;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::message_framing::Framing;
use crate::spool::Spool;
use crate::spooled_bytes::SpooledBytes;

/// What one read takes at most.
const READ_SIZE: usize = 8 * 1024;

/// Above this a drained buffer is given back.
const KEEP_CAPACITY: usize = 32 * 1024;

/// More than this waits in files, where there are any.
const MAX_IN_MEMORY: usize = 64 * 1024;

/// Framed bytes on their way out.
#[derive(Default)]
pub struct OutgoingBytes {
    bytes: Vec<u8>,
    sent: usize,
    /// What comes after these bytes and waits for a reader that is behind.
    spooled: Option<SpooledBytes>,
    /// Something was written that the writer may still hold.
    unflushed: bool,
}

impl OutgoingBytes {
    /// Bytes of which no more than a little is kept in memory, however large a message is.
    pub fn with_spool(spool: &Arc<Spool>) -> Self {
        Self { spooled: Some(SpooledBytes::new(Arc::clone(spool))), ..Self::default() }
    }

    /// Takes what waits, once everything older is written; false if something older is in the way. Much of it is taken at
    /// once, and put behind what is older.
    fn load_outbox(&mut self, framing: &mut impl Framing, outbox: &mut Outbox) -> io::Result<bool> {
        let large = outbox.bytes().len() > MAX_IN_MEMORY;
        if let Some(spooled) = self.spooled.as_mut().filter(|_| large) {
            let mut bytes = Vec::new();
            framing.encode_outbox(outbox, &mut bytes);
            spooled.push(bytes)?;
            return Ok(true);
        }
        let empty = self.is_empty();
        if empty {
            framing.encode_outbox(outbox, &mut self.bytes);
        }
        Ok(empty)
    }

    /// Takes what waits, and writes and flushes what the socket takes of it at once. What could not be taken because older
    /// bytes were in the way is taken as soon as they have left: nobody would ask for it again before something else happens.
    pub fn send_now<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        outbox: &mut Outbox,
        writer: &mut W,
    ) -> io::Result<()> {
        loop {
            let taken = self.load_outbox(framing, outbox)?;
            self.advance_now(writer)?;
            if taken || !self.is_empty() {
                return Ok(());
            }
        }
    }

    /// Takes what waits and writes all of it, unless nobody reads for so long.
    pub async fn send_all<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        outbox: &mut Outbox,
        writer: &mut W,
        time: Duration,
    ) -> io::Result<()> {
        let deadline = Instant::now() + time;
        loop {
            let taken = self.load_outbox(framing, outbox)?;
            self.write_all(writer, deadline.duration_since(Instant::now())).await?;
            if taken {
                return Ok(());
            }
        }
    }

    /// Takes what the framing itself has to say, behind whatever still waits.
    pub fn load_frames(&mut self, framing: &mut impl Framing) {
        framing.encode_outbox(&mut Outbox::default(), &mut self.bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.spooled.as_ref().is_none_or(SpooledBytes::is_empty)
    }

    /// True if nothing is left to do until there is more to be sent.
    pub fn is_done(&self) -> bool {
        self.is_empty() && !self.unflushed
    }

    /// How much waits, as far as that slows down its cause.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.spooled.as_ref().map_or(0, SpooledBytes::counted_len)
    }

    /// Writes some of it; once all is written, sees to it that it leaves: a TLS stream keeps what its socket did not take,
    /// and would send it with the next message, however late that is. Safe to drop at any time.
    pub async fn advance<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.is_empty() {
            writer.flush().await?;
            self.unflushed = false;
            return Ok(());
        }
        if let Some(spooled) = self.spooled.as_mut().filter(|_| self.bytes.is_empty()) {
            self.bytes = spooled.next_bytes().await?.into();
            return Ok(());
        }
        let wrote = writer.write(self.remaining()).await?;
        self.mark_written(wrote)
    }

    /// Writes and flushes what the socket takes at once. Nearly always that is all there is: then what was just said costs
    /// whoever waits for many things no further round through them.
    fn advance_now<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> io::Result<()> {
        // One step writes, the other flushes.
        for _ in 0..2 {
            let in_file = self.bytes.is_empty() && !self.is_empty();
            if self.is_done() || in_file {
                return Ok(());
            }
            match self.advance(writer).now_or_never() {
                Some(sent) => sent?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn remaining(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    fn mark_written(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.sent += bytes;
        self.unflushed = true;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_CAPACITY);
            self.sent = 0;
        }
        Ok(())
    }

    /// Writes all of it, unless nobody reads for so long.
    pub async fn write_all<W: AsyncWrite + Unpin>(&mut self, writer: &mut W, time: Duration) -> io::Result<()> {
        let write = async {
            while !self.is_done() {
                self.advance(writer).await?;
            }
            writer.flush().await
        };
        tokio::time::timeout(time, write).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Reads what is there into the framing; gives how much it was. Only while something is read is there a buffer for it:
/// most clients are silent most of the time.
pub async fn read_into_framing<F: Framing, R: AsyncRead + Unpin>(reader: &mut R, framing: &mut F) -> io::Result<usize> {
    std::future::poll_fn(|context| {
        let mut bytes = [MaybeUninit::uninit(); READ_SIZE];
        let mut buffer = ReadBuf::uninit(&mut bytes);
        std::task::ready!(Pin::new(&mut *reader).poll_read(context, &mut buffer))?;
        framing.push_bytes(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
    .await
}

/// When heartbeats of a framing are due; ones that were missed are not made up for.
pub fn heartbeat_interval(every: Duration) -> Interval {
    let mut heartbeats = tokio::time::interval_at(Instant::now() + every, every);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Skip);
    heartbeats
}

/// Waits for the next heartbeat; for ever if the framing has none.
pub async fn next_heartbeat(heartbeats: &mut Option<Interval>) {
    match heartbeats {
        Some(heartbeats) => drop(heartbeats.tick().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use gander_wire::jsonrpc::Lines;

    use super::*;

    /// Takes nothing while it is busy, as a full socket or a file whose thread still writes.
    #[derive(Default)]
    struct BusyWriter {
        busy: bool,
        written: Vec<u8>,
    }

    impl AsyncWrite for BusyWriter {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            if self.busy {
                return Poll::Pending;
            }
            self.written.extend_from_slice(bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.busy { Poll::Pending } else { Poll::Ready(Ok(())) }
        }

        fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_flush(context)
        }
    }

    #[test]
    fn what_waited_behind_older_bytes_leaves_as_soon_as_they_have() -> io::Result<()> {
        let (mut sending, mut outbox) = (OutgoingBytes::default(), Outbox::default());
        let (mut lines, mut writer) = (Lines::with_limit(1024), BusyWriter { busy: true, ..BusyWriter::default() });
        for message in ["older", "newer"] {
            outbox.push_message(|bytes| bytes.extend_from_slice(message.as_bytes()));
            sending.send_now(&mut lines, &mut outbox, &mut writer)?;
        }
        assert_eq!((sending.len(), outbox.bytes()), (6, &b"newer\n"[..]));
        writer.busy = false;
        sending.send_now(&mut lines, &mut outbox, &mut writer)?;
        assert_eq!((writer.written.as_slice(), outbox.bytes()), (&b"older\nnewer\n"[..], &b""[..]));
        assert!(sending.is_done());
        Ok(())
    }
}
