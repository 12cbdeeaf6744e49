//! Answers at the pace of their readers: in small frames, never far ahead, and given up if nobody reads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures::task::AtomicWaker;
use http::{Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::error::retry_later_response;
use crate::request_scanner::FramingError;
use crate::spool::{MemoryReservation, Spool, SpooledPiece};
use crate::stalled_readers::{StalledReaders, WaitingReader};

/// One frame takes at most so much of an answer.
const MAX_FRAME: usize = 16 * 1024;

/// So much of an answer may wait in the buffer of an HTTP/1 connection.
const MAX_BUFFERED: usize = 32 * 1024;

/// A larger piece waits in a file.
const MAX_IN_MEMORY: usize = 128 * 1024;

/// A smaller answer is not looked after: it costs less than looking after it.
const MIN_WATCHED: u64 = 4 * 1024;

/// What of a connection was written, for answers that wait to go on.
#[derive(Debug, Default)]
pub struct PacedWriteProgress {
    flushes: AtomicU64,
    waits: AtomicWaker,
    bad: OnceLock<FramingError>,
}

impl PacedWriteProgress {
    /// Its requests cannot be told apart.
    pub fn mark_bad_framing(&self, bad: FramingError) {
        self.bad.get_or_init(|| bad);
    }

    /// What is wrong with its requests.
    pub fn framing_error(&self) -> Option<FramingError> {
        self.bad.get().copied()
    }

    /// Everything is written.
    pub fn mark_flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Release);
        self.waits.wake();
    }

    fn flush_count(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }
}

/// What answers of one connection share.
#[derive(Clone, Debug)]
pub struct BodyPacer {
    pub spool: Arc<Spool>,
    pub readers: Arc<StalledReaders>,
    pub progress: Arc<PacedWriteProgress>,
    /// Ends the connection.
    pub cut: CancellationToken,
}

impl BodyPacer {
    /// For one connection.
    pub fn new(spool: &Arc<Spool>, readers: &Arc<StalledReaders>) -> Self {
        Self {
            spool: Arc::clone(spool),
            readers: Arc::clone(readers),
            progress: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    /// The answer, as its reader takes it. What is large already goes into a file before anybody reads it.
    pub async fn pace_response(&self, version: Version, response: Response<Body>) -> Response<PacedBody> {
        let (parts, body) = response.into_parts();
        let size = body.size_hint().exact();
        if size.is_none_or(|size| size <= MAX_IN_MEMORY as u64) {
            return Response::from_parts(parts, self.paced_body(version, body, LargePiece::None, size));
        }
        match self.spool_body(body).await {
            Ok(large) => Response::from_parts(parts, self.paced_body(version, Body::empty(), large, size)),
            Err(error) => {
                tracing::warn!(%error, "an answer has no room to wait for its reader");
                let message = "too many large answers wait to be read";
                let refusal = retry_later_response(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, 5);
                refusal.map(|body| self.paced_body(version, body, LargePiece::None, None))
            }
        }
    }

    async fn spool_body(&self, body: Body) -> Result<LargePiece, BoxError> {
        let whole = body.collect().await?.to_bytes();
        Ok(spawn_spool_write(&self.spool, whole).await??)
    }

    fn paced_body(&self, version: Version, body: Body, large: LargePiece, left: Option<u64>) -> PacedBody {
        let reader = match version {
            Version::HTTP_2 if left.is_some_and(|left| left <= MIN_WATCHED) => PacedReaderProgress::Trusted,
            Version::HTTP_2 => {
                PacedReaderProgress::Stream(self.readers.watch(self.cut.clone()), Arc::clone(&self.readers))
            }
            _ => PacedReaderProgress::Socket {
                progress: Arc::clone(&self.progress),
                given: 0,
                flushes: self.progress.flush_count(),
            },
        };
        PacedBody { body, ready: Bytes::new(), large, reader, spool: Arc::clone(&self.spool), left }
    }
}

/// An answer at the pace of its reader.
#[derive(Debug)]
pub struct PacedBody {
    body: Body,
    /// What was produced and not taken yet.
    ready: Bytes,
    large: LargePiece,
    reader: PacedReaderProgress,
    spool: Arc<Spool>,
    /// How much is left, if that is known.
    left: Option<u64>,
}

/// A piece that is too large to wait in memory.
#[derive(Debug, Default)]
enum LargePiece {
    #[default]
    None,
    Saving(JoinHandle<io::Result<Self>>),
    Kept(SpooledPiece),
    Reading(JoinHandle<io::Result<(SpooledPiece, Bytes)>>),
    /// There is no file to be had.
    Memory(Bytes, MemoryReservation),
    /// The same, being taken: it counts until it is.
    Taken {
        _memory: MemoryReservation,
    },
}

/// How it is known what a reader takes.
#[derive(Debug)]
enum PacedReaderProgress {
    /// What was given is buffered until it is written.
    Socket { progress: Arc<PacedWriteProgress>, given: usize, flushes: u64 },
    /// It is asked for more when its reader allows for more.
    Stream(Arc<WaitingReader>, Arc<StalledReaders>),
    /// So little that it does not matter.
    Trusted,
}

impl PacedReaderProgress {
    /// Ready if more can be given.
    fn poll_capacity(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Socket { progress, given, flushes } = self else { return Poll::Ready(()) };
        if *given < MAX_BUFFERED {
            return Poll::Ready(());
        }
        progress.waits.register(cx.waker());
        let count = progress.flush_count();
        if count == *flushes {
            return Poll::Pending;
        }
        (*given, *flushes) = (0, count);
        Poll::Ready(())
    }

    fn record_sent(&mut self, bytes: usize) {
        match self {
            Self::Socket { progress, given, flushes } => {
                let count = progress.flush_count();
                *given = if count == *flushes { *given + bytes } else { bytes };
                *flushes = count;
            }
            Self::Stream(waiting, readers) => waiting.since.store(readers.now(), Ordering::Relaxed),
            Self::Trusted => {}
        }
    }

    /// There is nothing to give yet.
    fn mark_waiting(&self) {
        if let Self::Stream(waiting, _) = self {
            waiting.since.store(0, Ordering::Relaxed);
        }
    }
}

type NextFrame = Option<Result<Frame<Bytes>, BoxError>>;

impl PacedBody {
    fn poll_next_frame(&mut self, cx: &mut Context<'_>) -> Poll<NextFrame> {
        loop {
            if !self.ready.is_empty() {
                let frame = self.ready.split_to(self.ready.len().min(MAX_FRAME));
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            match self.poll_large_piece(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Ok(true)) => continue,
                Poll::Ready(Ok(false)) => {}
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.len() > MAX_IN_MEMORY => {
                        self.large = LargePiece::Saving(spawn_spool_write(&self.spool, bytes))
                    }
                    Ok(bytes) => self.ready = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
    }

    /// Makes the next bytes of a large piece ready; false if there is none.
    fn poll_large_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BoxError>> {
        match &mut self.large {
            LargePiece::None => return Poll::Ready(Ok(false)),
            LargePiece::Saving(saving) => self.large = ready!(Pin::new(saving).poll(cx))??,
            LargePiece::Reading(projection) => {
                let (kept, bytes) = ready!(Pin::new(projection).poll(cx))??;
                (self.ready, self.large) = (bytes, LargePiece::Kept(kept));
            }
            LargePiece::Memory(..) | LargePiece::Taken { .. } | LargePiece::Kept(_) => {
                match std::mem::take(&mut self.large) {
                    LargePiece::Memory(bytes, memory) => {
                        (self.ready, self.large) = (bytes, LargePiece::Taken { _memory: memory });
                    }
                    LargePiece::Kept(mut kept) if kept.remaining() > 0 => {
                        let read = move || kept.read_next().map(|bytes| (kept, bytes));
                        self.large = LargePiece::Reading(self.spool.spawn_blocking_io(read));
                    }
                    LargePiece::Kept(_)
                    | LargePiece::Taken { .. }
                    | LargePiece::None
                    | LargePiece::Saving(_)
                    | LargePiece::Reading(_) => {}
                }
            }
        }
        Poll::Ready(Ok(true))
    }
}

impl hyper::body::Body for PacedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NextFrame> {
        let this = self.get_mut();
        ready!(this.reader.poll_capacity(cx));
        let next = this.poll_next_frame(cx);
        match &next {
            Poll::Pending => this.reader.mark_waiting(),
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.left = this.left.map(|left| left.saturating_sub(length as u64));
                this.reader.record_sent(length);
            }
            Poll::Ready(Some(Err(_)) | None) => {}
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
            || (self.ready.is_empty() && matches!(self.large, LargePiece::None) && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

fn spawn_spool_write(spool: &Arc<Spool>, bytes: Bytes) -> JoinHandle<io::Result<LargePiece>> {
    let Some(memory) = spool.reserve_memory(bytes.len() as u64) else {
        return tokio::spawn(std::future::ready(Err(io::ErrorKind::QuotaExceeded.into())));
    };
    let keeper = Arc::clone(spool);
    spool.spawn_blocking_io(move || match keeper.write_piece(&bytes) {
        Ok(kept) => Ok(LargePiece::Kept(kept)),
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Err(error),
        Err(error) => {
            tracing::warn!(%error, "a large answer waits in memory");
            Ok(LargePiece::Memory(bytes, memory))
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    const STALLED: Duration = Duration::from_secs(30);

    fn pace(folder: &tempfile::TempDir) -> BodyPacer {
        BodyPacer {
            spool: Arc::new(Spool::new(folder.path().to_owned())),
            readers: Arc::new(StalledReaders::new(STALLED)),
            progress: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn a_large_answer_comes_whole_in_small_frames_with_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let (pace, whole) = (pace(&folder), "x".repeat(1_000_000));
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let response = pace.pace_response(version, Response::new(Body::from(whole.clone()))).await;
            let mut body = response.into_body();
            assert_eq!(body.size_hint().exact(), Some(1_000_000));
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                let length = frame.unwrap().into_data().unwrap().len();
                assert!(length <= MAX_FRAME);
                read += length;
                pace.progress.mark_flushed();
            }
            assert_eq!((read, body.is_end_stream()), (1_000_000, true));
        }
    }

    #[tokio::test]
    async fn large_answers_that_find_no_room_are_refused_and_those_without_a_file_count() {
        let folder = tempfile::tempdir().unwrap();
        let pace = pace(&folder);
        let large = || Response::new(Body::from(vec![0; MAX_IN_MEMORY + 1]));
        let others = [1, (256 << 20) - 1].map(|bytes| pace.spool.reserve_memory(bytes).unwrap());
        let refused = pace.pace_response(Version::HTTP_11, large()).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(http::header::RETRY_AFTER));
        drop((refused, others));
        // Without a folder there is no file: the answer waits in memory, and that is counted until it is read.
        let homeless = BodyPacer { spool: Arc::new(Spool::new(folder.path().join("none"))), ..pace };
        let answered = homeless.pace_response(Version::HTTP_2, large()).await;
        assert_eq!(answered.status(), StatusCode::OK);
        assert!(homeless.spool.reserve_memory(256 << 20).is_none());
        assert_eq!(answered.into_body().collect().await.unwrap().to_bytes().len(), MAX_IN_MEMORY + 1);
        assert!(homeless.spool.reserve_memory(256 << 20).is_some());
    }

    #[tokio::test]
    async fn no_more_is_produced_than_a_connection_has_written() {
        let folder = tempfile::tempdir().unwrap();
        let pace = pace(&folder);
        let endless = futures::stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from(vec![0; MAX_FRAME])));
        let mut body =
            pace.pace_response(Version::HTTP_11, Response::new(Body::from_stream(endless))).await.into_body();
        for _ in 0..3 {
            let mut frames = 0;
            while futures::poll!(body.frame()).is_ready() {
                frames += 1;
            }
            assert_eq!(frames, MAX_BUFFERED / MAX_FRAME);
            pace.progress.mark_flushed();
        }
    }

    #[tokio::test]
    async fn a_stream_that_nobody_reads_ends_its_connection_and_one_that_waits_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let pace = pace(&folder);
        let later = pace.readers.now() + u64::try_from(STALLED.as_millis()).unwrap() + 1;
        let silent = futures::stream::pending::<io::Result<Bytes>>();
        let mut waits = pace.pace_response(Version::HTTP_2, Response::new(Body::from_stream(silent))).await.into_body();
        assert!(futures::poll!(waits.frame()).is_pending());
        pace.readers.close_stalled(later);
        assert!(!pace.cut.is_cancelled());
        let unread = pace.pace_response(Version::HTTP_2, Response::new(Body::from(vec![0; MAX_FRAME]))).await;
        pace.readers.close_stalled(later - 10);
        assert!(!pace.cut.is_cancelled());
        pace.readers.close_stalled(later + 1_000);
        assert!(pace.cut.is_cancelled());
        drop((unread, waits));
        pace.readers.close_stalled(later);
        assert!(pace.readers.lock().is_empty());
    }
}
