//! The bytes of a connection as they pass: a peer that takes none of them is gone, and frames of HTTP/2 that ask for
//! nothing are counted, and too many of them end the connection.
//!
//! The library below stops what costs memory (headers without an end, empty data, resets of streams that nobody has seen).
//! It answers every PING and SETTINGS, and takes every reset of a stream that was served: those are bounded here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Sleep;

use super::paced_body::Progress;
use super::request_framing::{Bad, Requests};

/// So many frames of a sort at once, and so many more with every second.
const BURST: f64 = 1_000.0;
const PER_SECOND: f64 = 200.0;

/// A client that is told much may ask as much how long that takes: one frame for so many bytes to it.
const BYTES_PER_FRAME: f64 = 64.0;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER: usize = 9;

/// A stream of bytes whose frames are counted.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    meter: Meter,
    alarm: Arc<Notify>,
    progress: Arc<Progress>,
    requests: Requests,
    /// A peer that takes nothing for so long is gone.
    stalled: Duration,
    /// Runs out if the peer takes nothing meanwhile.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    /// Counted from its beginning; and what says that there were too many.
    pub(crate) fn new(stream: S, progress: Arc<Progress>, stalled: Duration) -> (Self, Arc<Notify>) {
        let alarm = Arc::new(Notify::new());
        let (meter, requests) = (Meter::new(Instant::now()), Requests::default());
        let metered = Self { stream, meter, alarm: Arc::clone(&alarm), progress, requests, stalled, patience: None };
        (metered, alarm)
    }

    /// What came of a write; it fails if the peer took nothing for too long.
    fn watched<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let stalled = self.stalled;
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(stalled)));
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.meter.place == Place::Over {
            return Poll::Pending; // whoever waits for the alarm ends the connection
        }
        if this.progress.bad() == Some(Bad::Chunk) {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        this.meter.read(read, Instant::now());
        if matches!(this.meter.place, Place::Other | Place::Preface(_))
            && let Err(bad) = this.requests.read(read)
        {
            this.progress.fails(bad); // refused with its answer
        }
        if this.meter.place == Place::Over {
            this.alarm.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        let written = ready!(this.watched(cx, written))?;
        this.meter.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        let written = ready!(this.watched(cx, written))?;
        this.meter.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        ready!(this.watched(cx, flushed))?;
        this.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.watched(cx, closed)
    }
}

/// Where in the stream the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// So many bytes are as HTTP/2 begins.
    Preface(usize),
    /// So many bytes of a frame's header are known.
    Header([u8; HEADER], usize),
    /// So many bytes of a frame are left.
    Payload(usize),
    /// It is not HTTP/2.
    Other,
    /// There were too many.
    Over,
}

#[derive(Debug)]
struct Meter {
    place: Place,
    idle: Allowance,
    resets: Allowance,
}

/// What is left of a number of frames.
#[derive(Debug)]
struct Allowance {
    left: f64,
    since: Instant,
}

impl Meter {
    fn new(now: Instant) -> Self {
        let full = || Allowance { left: BURST, since: now };
        Self { place: Place::Preface(0), idle: full(), resets: full() }
    }

    fn wrote(&mut self, bytes: usize) {
        self.idle.add(bytes as f64 / BYTES_PER_FRAME);
    }

    fn read(&mut self, mut bytes: &[u8], now: Instant) {
        self.idle.pass(now);
        self.resets.pass(now);
        while let [first, ..] = bytes {
            let taken = match &mut self.place {
                Place::Other | Place::Over => return,
                Place::Payload(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    taken
                }
                Place::Preface(known) => {
                    self.place = if PREFACE[*known] != *first {
                        Place::Other
                    } else if *known + 1 == PREFACE.len() {
                        Place::Payload(0)
                    } else {
                        Place::Preface(*known + 1)
                    };
                    1
                }
                Place::Header(header, known) => {
                    header[*known] = *first;
                    *known += 1;
                    1
                }
            };
            bytes = &bytes[taken..];
            self.advance();
        }
    }

    /// From the end of a frame to the next one, and from its header to what follows it.
    fn advance(&mut self) {
        match self.place {
            Place::Payload(0) => self.place = Place::Header([0; HEADER], 0),
            Place::Header(header, HEADER) => self.place = self.counted(header),
            Place::Payload(_) | Place::Header(..) | Place::Preface(_) | Place::Other | Place::Over => {}
        }
    }

    fn counted(&mut self, header: [u8; HEADER]) -> Place {
        let [a, b, c, kind, flags, ..] = header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let fits = match (kind, flags & 1) {
            // DATA without any, PRIORITY, SETTINGS and PING that want an answer.
            (0, 0) if length == 0 => self.idle.take(),
            (2, _) | (4 | 6, 0) => self.idle.take(),
            (3, _) => self.resets.take(),
            (_, _) => true,
        };
        match (fits, length) {
            (false, _) => Place::Over,
            (true, 0) => Place::Header([0; HEADER], 0),
            (true, length) => Place::Payload(length),
        }
    }
}

impl Allowance {
    fn add(&mut self, frames: f64) {
        self.left = (self.left + frames).min(BURST);
    }

    fn pass(&mut self, now: Instant) {
        self.add(now.saturating_duration_since(self.since).as_secs_f64() * PER_SECOND);
        self.since = now;
    }

    fn take(&mut self) -> bool {
        self.left -= 1.0;
        self.left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap_or(u8::MAX);
        [&[0, 0, length, kind, flags, 0, 0, 0, 0][..], payload].concat()
    }

    /// How it stands after these frames, however they are cut.
    fn after(frames: &[u8], cut: usize) -> Place {
        let now = Instant::now();
        let mut meter = Meter::new(now);
        let all = [PREFACE, frames].concat();
        all.chunks(cut).for_each(|piece| meter.read(piece, now));
        meter.place
    }

    #[test]
    fn frames_that_ask_for_nothing_have_an_end() {
        let next = Place::Header([0; HEADER], 0);
        for (kind, flags, payload) in
            [(6, 0, &[0; 8][..]), (4, 0, &[]), (4, 0, &[0; 6]), (3, 0, &[0; 4]), (0, 0, &[]), (2, 0, &[0; 5])]
        {
            for cut in [1, 7, 9, 4096] {
                assert_eq!(after(&frame(kind, flags, payload).repeat(1_000), cut), next, "{kind} {cut}");
                assert_eq!(after(&frame(kind, flags, payload).repeat(1_001), cut), Place::Over, "{kind} {cut}");
            }
        }
    }

    #[test]
    fn what_is_asked_for_or_answers_is_not_counted() {
        let next = Place::Header([0; HEADER], 0);
        // Data, the end of data, headers, windows, answers to our own pings and settings.
        for (kind, flags, payload) in
            [(0, 0, &[1][..]), (0, 1, &[]), (1, 4, &[1]), (8, 0, &[0; 4]), (6, 1, &[0; 8]), (4, 1, &[])]
        {
            assert_eq!(after(&frame(kind, flags, payload).repeat(100_000), 4096), next, "{kind}");
        }
    }

    #[test]
    fn time_and_what_is_sent_back_allow_more() {
        let (begin, ping) = (Instant::now(), frame(6, 0, &[0; 8]));
        let mut meter = Meter::new(begin);
        meter.read(PREFACE, begin);
        for second in 0..60 {
            meter.read(&ping.repeat(200), begin + Duration::from_secs(second));
        }
        for _ in 0..100_000 {
            meter.wrote(100);
            meter.read(&ping, begin + Duration::from_secs(60));
        }
        assert_ne!(meter.place, Place::Over);
        (0..2_000).for_each(|_| {
            meter.wrote(17); // its own answer earns no frame
            meter.read(&ping, begin + Duration::from_secs(60));
        });
        assert_eq!(meter.place, Place::Over);
    }

    #[test]
    fn another_protocol_passes() {
        let now = Instant::now();
        let mut meter = Meter::new(now);
        meter.read(b"PRI * HTTP/1.1\r\n", now);
        assert_eq!(meter.place, Place::Other);
    }
}
