//! A session's log as a stream of events: pulled by whoever reads, so a slow reader costs nothing.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use gander_domain::{Entry, Seq};
use gander_runtime::hub::{FollowedBatch, Follower};
use gander_store::StoreError;
use tokio_util::sync::CancellationToken;

use super::writer::SseShape;
use super::{EventSource, KeepAlive, SseWriter, StreamPosition, drive_event_stream};

/// What a protocol makes of a log, entry by entry.
pub trait SseProjection: Send + 'static {
    /// What is said before the first entry.
    fn write_start(&mut self, _frames: &mut SseWriter) {}

    /// What an entry says.
    fn project_entry(&mut self, entry: &Entry, frames: &mut SseWriter);

    /// True if nothing follows what was read.
    fn is_complete(&self) -> bool;

    /// The log can be read no further.
    fn write_log_lost(&mut self, _frames: &mut SseWriter) {}

    /// True if this entry cannot be read before something is restored that was let go to save memory.
    fn needs_restore(&self, _entry: &Entry) -> bool {
        false
    }

    /// Restores what was let go, from the log up to this place.
    fn restore(&mut self, _upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A stream of events to be.
pub struct SseStream<R> {
    /// Where the log is read; at or before what the reader has.
    pub follower: Follower,
    /// What is made of it.
    pub projection: R,
    /// What the reader has: nothing of this is said again.
    pub seen: StreamPosition,
    /// Which life of the log this is.
    pub incarnation: u32,
    /// Cancelled when streams end.
    pub stop: CancellationToken,
}

impl<R: SseProjection> SseStream<R> {
    /// The events, as many in one piece as there are. Comments break a long silence.
    pub fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let writer = SseWriter::new(SseShape::Events, self.seen, self.incarnation);
        let source = LogEvents { follower: self.follower, projection: self.projection, writer, is_lost: false };
        drive_event_stream(source, KeepAlive::comment_after_silence(), self.stop)
    }

    /// All events up to this entry, or so far, as one list between a head and a tail. A piece of the log is read when
    /// the one before was taken.
    pub fn into_json_list(
        self,
        end: Seq,
        head: &'static str,
        tail: &'static str,
    ) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        let mut frames = SseWriter::new(SseShape::List(false), StreamPosition::default(), self.incarnation);
        frames.bytes.extend_from_slice(head.as_bytes());
        let listing =
            ListStream { follower: self.follower, projection: self.projection, frames, end, tail, over: false };
        futures::stream::try_unfold(listing, |mut listing| async move {
            let piece = listing.next_piece().await?;
            Ok(piece.map(|piece| (piece, listing)))
        })
    }
}

/// The events of a followed log.
struct LogEvents<R> {
    follower: Follower,
    projection: R,
    writer: SseWriter,
    /// The log can be read no further.
    is_lost: bool,
}

impl<R: SseProjection> LogEvents<R> {
    /// False if the log can be read no further.
    async fn write_batch(&mut self, batch: Result<Option<FollowedBatch>, StoreError>) -> bool {
        let Ok(Some(batch)) = batch else { return false };
        for entry in batch.iter() {
            if restore_and_project_sse(&mut self.projection, entry, &mut self.writer).await.is_err() {
                return false;
            }
            if self.projection.is_complete() {
                break;
            }
        }
        true
    }
}

impl<R: SseProjection> EventSource for LogEvents<R> {
    type Input = Result<Option<FollowedBatch>, StoreError>;

    fn write_start(&mut self, bytes: &mut Vec<u8>) {
        self.projection.write_start(&mut self.writer);
        bytes.append(&mut self.writer.bytes);
    }

    fn next_input(&mut self) -> impl Future<Output = Self::Input> + Send {
        self.follower.next_batch()
    }

    async fn write_input(&mut self, batch: Self::Input, bytes: &mut Vec<u8>) {
        // A server that ends says nothing of its sessions: whoever comes back with its last id reads on.
        let is_closed = matches!(batch, Err(StoreError::Closed));
        if !self.write_batch(batch).await {
            if !is_closed {
                self.projection.write_log_lost(&mut self.writer);
            }
            self.is_lost = true;
        }
        bytes.append(&mut self.writer.bytes);
    }

    fn is_complete(&self) -> bool {
        self.is_lost || self.projection.is_complete()
    }
}

/// Events on their way into a list.
struct ListStream<R> {
    follower: Follower,
    projection: R,
    frames: SseWriter,
    end: Seq,
    tail: &'static str,
    over: bool,
}

impl<R: SseProjection> ListStream<R> {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, StoreError> {
        while !self.over {
            let batch = if self.follower.last_seq() < self.end { self.follower.next_stored().await? } else { None };
            match &batch {
                Some(batch) => {
                    for entry in batch.iter().take_while(|entry| entry.seq <= self.end) {
                        restore_and_project_sse(&mut self.projection, entry, &mut self.frames).await?;
                    }
                }
                None => {
                    self.over = true;
                    self.frames.bytes.extend_from_slice(self.tail.as_bytes());
                }
            }
            if !self.frames.bytes.is_empty() {
                return Ok(Some(std::mem::take(&mut self.frames.bytes).into()));
            }
        }
        Ok(None)
    }
}

async fn restore_and_project_sse<R: SseProjection>(
    projection: &mut R,
    entry: &Entry,
    frames: &mut SseWriter,
) -> Result<(), StoreError> {
    if projection.needs_restore(entry) {
        projection.restore(Seq(entry.seq.0.saturating_sub(1))).await?;
    }
    (frames.seq, frames.index) = (entry.seq, 0);
    projection.project_entry(entry, frames);
    Ok(())
}
