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

use crate::paced_body::PacedWriteProgress;
use crate::request_scanner::{FramingError, RequestScanner};

/// So many frames of a sort at once, and so many more with every second.
const FRAME_BURST: f64 = 1_000.0;
const FRAMES_PER_SECOND: f64 = 200.0;

/// A client that is told much may ask as much how long that takes: one frame for so many bytes to it.
const BYTES_PER_FRAME: f64 = 64.0;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER_LEN: usize = 9;

/// A stream of bytes whose frames are counted.
#[derive(Debug)]
pub struct MeteredStream<S> {
    stream: S,
    meter: FrameMeter,
    alarm: Arc<Notify>,
    progress: Arc<PacedWriteProgress>,
    requests: RequestScanner,
    /// A peer that takes nothing for so long is gone.
    stalled: Duration,
    /// Runs out if the peer takes nothing meanwhile.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> MeteredStream<S> {
    /// Counted from its beginning; and what says that there were too many.
    pub fn new(stream: S, progress: Arc<PacedWriteProgress>, stalled: Duration) -> (Self, Arc<Notify>) {
        let alarm = Arc::new(Notify::new());
        let (meter, requests) = (FrameMeter::new(Instant::now()), RequestScanner::default());
        let metered = Self { stream, meter, alarm: Arc::clone(&alarm), progress, requests, stalled, patience: None };
        (metered, alarm)
    }

    /// What came of a write; it fails if the peer took nothing for too long.
    fn check_stalled<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
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

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.meter.position == FramePosition::Over {
            return Poll::Pending; // whoever waits for the alarm ends the connection
        }
        if this.progress.framing_error() == Some(FramingError::Chunk) {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        this.meter.scan_read(read, Instant::now());
        if matches!(this.meter.position, FramePosition::Other | FramePosition::Preface(_))
            && let Err(bad) = this.requests.scan(read)
        {
            this.progress.mark_bad_framing(bad); // refused with its answer
        }
        if this.meter.position == FramePosition::Over {
            this.alarm.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        let written = ready!(this.check_stalled(cx, written))?;
        this.meter.count_written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        let written = ready!(this.check_stalled(cx, written))?;
        this.meter.count_written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        ready!(this.check_stalled(cx, flushed))?;
        this.progress.mark_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.check_stalled(cx, closed)
    }
}

/// Where in the stream the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePosition {
    /// So many bytes are as HTTP/2 begins.
    Preface(usize),
    /// So many bytes of a frame's header are known.
    Header([u8; FRAME_HEADER_LEN], usize),
    /// So many bytes of a frame are left.
    Payload(usize),
    /// It is not HTTP/2.
    Other,
    /// There were too many.
    Over,
}

#[derive(Debug)]
struct FrameMeter {
    position: FramePosition,
    idle: FrameAllowance,
    resets: FrameAllowance,
}

/// What is left of a number of frames.
#[derive(Debug)]
struct FrameAllowance {
    left: f64,
    since: Instant,
}

impl FrameMeter {
    fn new(now: Instant) -> Self {
        let full = || FrameAllowance { left: FRAME_BURST, since: now };
        Self { position: FramePosition::Preface(0), idle: full(), resets: full() }
    }

    fn count_written(&mut self, bytes: usize) {
        self.idle.grant(bytes as f64 / BYTES_PER_FRAME);
    }

    fn scan_read(&mut self, mut bytes: &[u8], now: Instant) {
        self.idle.refill(now);
        self.resets.refill(now);
        while let [first, ..] = bytes {
            let taken = match &mut self.position {
                FramePosition::Other | FramePosition::Over => return,
                FramePosition::Payload(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    taken
                }
                FramePosition::Preface(known) => {
                    self.position = if PREFACE[*known] != *first {
                        FramePosition::Other
                    } else if *known + 1 == PREFACE.len() {
                        FramePosition::Payload(0)
                    } else {
                        FramePosition::Preface(*known + 1)
                    };
                    1
                }
                FramePosition::Header(header, known) => {
                    header[*known] = *first;
                    *known += 1;
                    1
                }
            };
            bytes = &bytes[taken..];
            self.advance_position();
        }
    }

    /// From the end of a frame to the next one, and from its header to what follows it.
    fn advance_position(&mut self) {
        match self.position {
            FramePosition::Payload(0) => self.position = FramePosition::Header([0; FRAME_HEADER_LEN], 0),
            FramePosition::Header(header, FRAME_HEADER_LEN) => self.position = self.charge_frame(header),
            FramePosition::Payload(_)
            | FramePosition::Header(..)
            | FramePosition::Preface(_)
            | FramePosition::Other
            | FramePosition::Over => {}
        }
    }

    fn charge_frame(&mut self, header: [u8; FRAME_HEADER_LEN]) -> FramePosition {
        let [a, b, c, kind, flags, ..] = header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let fits = match (kind, flags & 1) {
            // DATA without any, PRIORITY, SETTINGS and PING that want an answer.
            (0, 0) if length == 0 => self.idle.spend(),
            (2, _) | (4 | 6, 0) => self.idle.spend(),
            (3, _) => self.resets.spend(),
            (_, _) => true,
        };
        match (fits, length) {
            (false, _) => FramePosition::Over,
            (true, 0) => FramePosition::Header([0; FRAME_HEADER_LEN], 0),
            (true, length) => FramePosition::Payload(length),
        }
    }
}

impl FrameAllowance {
    fn grant(&mut self, frames: f64) {
        self.left = (self.left + frames).min(FRAME_BURST);
    }

    fn refill(&mut self, now: Instant) {
        self.grant(now.saturating_duration_since(self.since).as_secs_f64() * FRAMES_PER_SECOND);
        self.since = now;
    }

    fn spend(&mut self) -> bool {
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
    fn after(frames: &[u8], cut: usize) -> FramePosition {
        let now = Instant::now();
        let mut meter = FrameMeter::new(now);
        let all = [PREFACE, frames].concat();
        all.chunks(cut).for_each(|piece| meter.scan_read(piece, now));
        meter.position
    }

    #[test]
    fn frames_that_ask_for_nothing_have_an_end() {
        let next = FramePosition::Header([0; FRAME_HEADER_LEN], 0);
        for (kind, flags, payload) in
            [(6, 0, &[0; 8][..]), (4, 0, &[]), (4, 0, &[0; 6]), (3, 0, &[0; 4]), (0, 0, &[]), (2, 0, &[0; 5])]
        {
            for cut in [1, 7, 9, 4096] {
                assert_eq!(after(&frame(kind, flags, payload).repeat(1_000), cut), next, "{kind} {cut}");
                assert_eq!(after(&frame(kind, flags, payload).repeat(1_001), cut), FramePosition::Over, "{kind} {cut}");
            }
        }
    }

    #[test]
    fn what_is_asked_for_or_answers_is_not_counted() {
        let next = FramePosition::Header([0; FRAME_HEADER_LEN], 0);
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
        let mut meter = FrameMeter::new(begin);
        meter.scan_read(PREFACE, begin);
        for second in 0..60 {
            meter.scan_read(&ping.repeat(200), begin + Duration::from_secs(second));
        }
        for _ in 0..100_000 {
            meter.count_written(100);
            meter.scan_read(&ping, begin + Duration::from_secs(60));
        }
        assert_ne!(meter.position, FramePosition::Over);
        (0..2_000).for_each(|_| {
            meter.count_written(17); // its own answer earns no frame
            meter.scan_read(&ping, begin + Duration::from_secs(60));
        });
        assert_eq!(meter.position, FramePosition::Over);
    }

    #[test]
    fn another_protocol_passes() {
        let now = Instant::now();
        let mut meter = FrameMeter::new(now);
        meter.scan_read(b"PRI * HTTP/1.1\r\n", now);
        assert_eq!(meter.position, FramePosition::Other);
    }
}
