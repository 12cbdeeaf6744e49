//! Answers at the pace of their readers: in small frames, never far ahead, and given up if nobody reads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures::task::AtomicWaker;
use http::{Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::error::later;
use super::request_framing::Bad;
use super::spool::{Kept, Spool};
use super::state::HttpState;

/// One frame takes at most so much of an answer.
const FRAME: usize = 16 * 1024;

/// So much of an answer may wait in the buffer of an HTTP/1 connection.
const AHEAD: usize = 32 * 1024;

/// A larger piece waits in a file.
const IN_MEMORY: usize = 128 * 1024;

/// A smaller answer is not looked after: it costs less than looking after it.
const TINY: u64 = 4 * 1024;

/// How often readers are looked after.
const SWEEP: Duration = Duration::from_secs(2);

/// What of a connection was written, for answers that wait to go on.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    flushes: AtomicU64,
    waits: AtomicWaker,
    bad: OnceLock<Bad>,
}

impl Progress {
    /// Its requests cannot be told apart.
    pub(crate) fn fails(&self, bad: Bad) {
        self.bad.get_or_init(|| bad);
    }

    /// What is wrong with its requests.
    pub(crate) fn bad(&self) -> Option<Bad> {
        self.bad.get().copied()
    }

    /// Everything is written.
    pub(crate) fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Release);
        self.waits.wake();
    }

    fn count(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }
}

/// The readers of HTTP/2: they can leave a stream alone whose connection is well.
#[derive(Debug)]
pub(crate) struct Readers {
    begin: Instant,
    /// A reader that takes nothing for so long is given up.
    stalled: Duration,
    open: Mutex<Vec<Weak<Waiting>>>,
}

/// Since when an answer waits for its reader.
#[derive(Debug)]
struct Waiting {
    /// Milliseconds; zero while it is the reader who waits.
    since: AtomicU64,
    connection: CancellationToken,
}

impl Readers {
    pub(crate) fn new(stalled: Duration) -> Self {
        Self { begin: Instant::now(), stalled, open: Mutex::default() }
    }

    /// Ends the connections of readers that take nothing.
    pub(crate) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        let mut every = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => self.give_up(self.now()),
            }
        }
    }

    fn give_up(&self, now: u64) {
        let longest = u64::try_from(self.stalled.as_millis()).unwrap_or(u64::MAX);
        self.lock().retain(|waiting| {
            let Some(waiting) = waiting.upgrade() else { return false };
            let since = waiting.since.load(Ordering::Relaxed);
            if since > 0 && now.saturating_sub(since) >= longest {
                waiting.connection.cancel();
            }
            true
        });
    }

    fn add(&self, connection: CancellationToken) -> Arc<Waiting> {
        let waiting = Arc::new(Waiting { since: AtomicU64::new(self.now()), connection });
        self.lock().push(Arc::downgrade(&waiting));
        waiting
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Waiting>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What answers of one connection share.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) spool: Arc<Spool>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) progress: Arc<Progress>,
    /// Ends the connection.
    pub(crate) cut: CancellationToken,
}

impl Pace {
    /// For one connection.
    pub(crate) fn new(state: &HttpState) -> Self {
        Self {
            spool: Arc::clone(&state.spool),
            readers: Arc::clone(&state.readers),
            progress: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    /// The answer, as its reader takes it. What is large already goes into a file before anybody reads it.
    pub(crate) async fn keep(&self, version: Version, response: Response<Body>) -> Response<Paced> {
        let (parts, body) = response.into_parts();
        let size = body.size_hint().exact();
        if size.is_none_or(|size| size <= IN_MEMORY as u64) {
            return Response::from_parts(parts, self.paced(version, body, Large::None, size));
        }
        match self.save(body).await {
            Ok(large) => Response::from_parts(parts, self.paced(version, Body::empty(), large, size)),
            Err(error) => {
                tracing::warn!(%error, "an answer has no room to wait for its reader");
                let message = "too many large answers wait to be read";
                let refusal = later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, 5);
                refusal.map(|body| self.paced(version, body, Large::None, None))
            }
        }
    }

    async fn save(&self, body: Body) -> Result<Large, BoxError> {
        let whole = body.collect().await?.to_bytes();
        Ok(saving(&self.spool, whole).await??)
    }

    fn paced(&self, version: Version, body: Body, large: Large, left: Option<u64>) -> Paced {
        let reader = match version {
            Version::HTTP_2 if left.is_some_and(|left| left <= TINY) => Reader::Trusted,
            Version::HTTP_2 => Reader::Stream(self.readers.add(self.cut.clone()), Arc::clone(&self.readers)),
            _ => Reader::Socket { progress: Arc::clone(&self.progress), given: 0, flushes: self.progress.count() },
        };
        Paced { body, ready: Bytes::new(), large, reader, spool: Arc::clone(&self.spool), left }
    }
}

/// An answer at the pace of its reader.
#[derive(Debug)]
pub(crate) struct Paced {
    body: Body,
    /// What was produced and not taken yet.
    ready: Bytes,
    large: Large,
    reader: Reader,
    spool: Arc<Spool>,
    /// How much is left, if that is known.
    left: Option<u64>,
}

/// A piece that is too large to wait in memory.
#[derive(Debug, Default)]
enum Large {
    #[default]
    None,
    Saving(JoinHandle<io::Result<Self>>),
    Kept(Kept),
    Reading(JoinHandle<io::Result<(Kept, Bytes)>>),
    /// There is no file to be had.
    Memory(Bytes),
}

/// How it is known what a reader takes.
#[derive(Debug)]
enum Reader {
    /// What was given is buffered until it is written.
    Socket { progress: Arc<Progress>, given: usize, flushes: u64 },
    /// It is asked for more when its reader allows for more.
    Stream(Arc<Waiting>, Arc<Readers>),
    /// So little that it does not matter.
    Trusted,
}

impl Reader {
    /// Ready if more can be given.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Socket { progress, given, flushes } = self else { return Poll::Ready(()) };
        if *given < AHEAD {
            return Poll::Ready(());
        }
        progress.waits.register(cx.waker());
        let count = progress.count();
        if count == *flushes {
            return Poll::Pending;
        }
        (*given, *flushes) = (0, count);
        Poll::Ready(())
    }

    fn gave(&mut self, bytes: usize) {
        match self {
            Self::Socket { progress, given, flushes } => {
                let count = progress.count();
                *given = if count == *flushes { *given + bytes } else { bytes };
                *flushes = count;
            }
            Self::Stream(waiting, readers) => waiting.since.store(readers.now(), Ordering::Relaxed),
            Self::Trusted => {}
        }
    }

    /// There is nothing to give yet.
    fn waits(&self) {
        if let Self::Stream(waiting, _) = self {
            waiting.since.store(0, Ordering::Relaxed);
        }
    }
}

type Next = Option<Result<Frame<Bytes>, BoxError>>;

impl Paced {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if !self.ready.is_empty() {
                let frame = self.ready.split_to(self.ready.len().min(FRAME));
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            match self.poll_large(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Ok(true)) => continue,
                Poll::Ready(Ok(false)) => {}
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if bytes.len() > IN_MEMORY => self.large = Large::Saving(saving(&self.spool, bytes)),
                    Ok(bytes) => self.ready = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
    }

    /// Makes the next bytes of a large piece ready; false if there is none.
    fn poll_large(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BoxError>> {
        match &mut self.large {
            Large::None => return Poll::Ready(Ok(false)),
            Large::Saving(saving) => self.large = ready!(Pin::new(saving).poll(cx))??,
            Large::Reading(reading) => {
                let (kept, bytes) = ready!(Pin::new(reading).poll(cx))??;
                (self.ready, self.large) = (bytes, Large::Kept(kept));
            }
            Large::Memory(_) | Large::Kept(_) => match std::mem::take(&mut self.large) {
                Large::Memory(bytes) => self.ready = bytes,
                Large::Kept(mut kept) if kept.left() > 0 => {
                    let read = move || kept.next().map(|bytes| (kept, bytes));
                    self.large = Large::Reading(self.spool.at_its_turn(read));
                }
                Large::Kept(_) | Large::None | Large::Saving(_) | Large::Reading(_) => {}
            },
        }
        Poll::Ready(Ok(true))
    }
}

impl hyper::body::Body for Paced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next> {
        let this = self.get_mut();
        ready!(this.reader.poll_room(cx));
        let next = this.poll_next(cx);
        match &next {
            Poll::Pending => this.reader.waits(),
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.left = this.left.map(|left| left.saturating_sub(length as u64));
                this.reader.gave(length);
            }
            Poll::Ready(Some(Err(_)) | None) => {}
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
            || (self.ready.is_empty() && matches!(self.large, Large::None) && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

fn saving(spool: &Arc<Spool>, bytes: Bytes) -> JoinHandle<io::Result<Large>> {
    let keeper = Arc::clone(spool);
    spool.at_its_turn(move || match keeper.keep(&bytes) {
        Ok(kept) => Ok(Large::Kept(kept)),
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Err(error),
        Err(error) => {
            tracing::warn!(%error, "a large answer waits in memory");
            Ok(Large::Memory(bytes))
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STALLED: Duration = Duration::from_secs(30);

    fn pace(folder: &tempfile::TempDir) -> Pace {
        Pace {
            spool: Arc::new(Spool::new(folder.path().to_owned())),
            readers: Arc::new(Readers::new(STALLED)),
            progress: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn a_large_answer_comes_whole_in_small_frames_with_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let (pace, whole) = (pace(&folder), "x".repeat(1_000_000));
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let response = pace.keep(version, Response::new(Body::from(whole.clone()))).await;
            let mut body = response.into_body();
            assert_eq!(body.size_hint().exact(), Some(1_000_000));
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                let length = frame.unwrap().into_data().unwrap().len();
                assert!(length <= FRAME);
                read += length;
                pace.progress.flushed();
            }
            assert_eq!((read, body.is_end_stream()), (1_000_000, true));
        }
    }

    #[tokio::test]
    async fn no_more_is_produced_than_a_connection_has_written() {
        let folder = tempfile::tempdir().unwrap();
        let pace = pace(&folder);
        let endless = futures::stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from(vec![0; FRAME])));
        let mut body = pace.keep(Version::HTTP_11, Response::new(Body::from_stream(endless))).await.into_body();
        for _ in 0..3 {
            let mut frames = 0;
            while futures::poll!(body.frame()).is_ready() {
                frames += 1;
            }
            assert_eq!(frames, AHEAD / FRAME);
            pace.progress.flushed();
        }
    }

    #[tokio::test]
    async fn a_stream_that_nobody_reads_ends_its_connection_and_one_that_waits_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let pace = pace(&folder);
        let later = pace.readers.now() + u64::try_from(STALLED.as_millis()).unwrap() + 1;
        let silent = futures::stream::pending::<io::Result<Bytes>>();
        let mut waits = pace.keep(Version::HTTP_2, Response::new(Body::from_stream(silent))).await.into_body();
        assert!(futures::poll!(waits.frame()).is_pending());
        pace.readers.give_up(later);
        assert!(!pace.cut.is_cancelled());
        let unread = pace.keep(Version::HTTP_2, Response::new(Body::from(vec![0; FRAME]))).await;
        pace.readers.give_up(later - 10);
        assert!(!pace.cut.is_cancelled());
        pace.readers.give_up(later + 1_000);
        assert!(pace.cut.is_cancelled());
        drop((unread, waits));
        pace.readers.give_up(later);
        assert!(pace.readers.lock().is_empty());
    }
}
