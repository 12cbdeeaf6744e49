//! A session's log as a stream of events: pulled by whoever reads, so a slow reader costs nothing.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use gander_domain::{Entry, Seq};
use gander_runtime::hub::{Batch, Follower};
use gander_store::StoreError;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{EventId, KEEP_ALIVE, Position, SILENCE, event};

/// What a protocol makes of a log, entry by entry.
pub trait Reading: Send + 'static {
    /// What is said before the first entry.
    fn begin(&mut self, _frames: &mut Frames) {}

    /// What an entry says.
    fn read(&mut self, entry: &Entry, frames: &mut Frames);

    /// True if nothing follows what was read.
    fn is_over(&self) -> bool;

    /// The log can be read no further.
    fn lost(&mut self, _frames: &mut Frames) {}

    /// True if this entry cannot be read before something is restored that was let go to save memory.
    fn lacks(&self, _entry: &Entry) -> bool {
        false
    }

    /// Restores what was let go, from the log up to this place.
    fn restore(&mut self, _upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A stream of events to be.
pub struct Follow<R> {
    /// Where the log is read; at or before what the reader has.
    pub follower: Follower,
    /// What is made of it.
    pub reading: R,
    /// What the reader has: nothing of this is said again.
    pub seen: Position,
    /// Which life of the log this is.
    pub incarnation: u32,
    /// Cancelled when streams end.
    pub stop: CancellationToken,
}

/// Events of one entry after another: each with its id, or as the items of one list.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    shape: Shape,
    incarnation: u32,
    seen: Position,
    seq: Seq,
    index: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Events,
    /// A list; whether it has an item already.
    List(bool),
}

impl Frames {
    fn new(shape: Shape, seen: Position, incarnation: u32) -> Self {
        Self { bytes: Vec::new(), shape, incarnation, seen, seq: Seq::ZERO, index: 0 }
    }

    fn add(&mut self, id: Option<&EventId>, json: &[u8]) {
        match self.shape {
            Shape::Events => event(&mut self.bytes, id.map(|id| id as &dyn std::fmt::Display), json),
            Shape::List(more) => {
                self.bytes.extend_from_slice(if more { b"," } else { b"" });
                self.bytes.extend_from_slice(json);
                self.shape = Shape::List(true);
            }
        }
    }

    /// Adds an event, unless the reader has it.
    pub fn event(&mut self, message: &impl Serialize) {
        let index = self.index;
        self.index += 1;
        if self.seen.covers(self.seq.0, index) && self.seen != Position::default() {
            return;
        }
        let json = serde_json::to_vec(message).expect("wire types are made of what JSON can say");
        self.place(index, &json);
    }

    /// Adds an event that is JSON already, unless the reader has it.
    pub fn written(&mut self, json: &[u8]) {
        let index = self.index;
        self.index += 1;
        if !self.seen.covers(self.seq.0, index) || self.seen == Position::default() {
            self.place(index, json);
        }
    }

    /// Adds an event that is JSON already and has no place in the log.
    pub fn written_aside(&mut self, json: &[u8]) {
        self.add(None, json);
    }

    fn place(&mut self, index: u32, json: &[u8]) {
        let id = EventId { incarnation: self.incarnation, position: Position { seq: self.seq.0, index, answer: 0 } };
        self.add(Some(&id), json);
    }

    /// Adds an event that has no place in the log: it is not said again to a reader who comes back.
    pub fn aside(&mut self, message: &impl Serialize) {
        let json = serde_json::to_vec(message).expect("wire types are made of what JSON can say");
        self.add(None, &json);
    }
}

impl<R: Reading> Follow<R> {
    /// The events, as many in one piece as there are. Comments break a long silence.
    pub fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let frames = Frames::new(Shape::Events, self.seen, self.incarnation);
        futures::stream::unfold((self, frames, Stage::New), |(mut follow, mut frames, stage)| async move {
            let stage = follow.advance(&mut frames, stage).await?;
            let piece = if frames.bytes.is_empty() { KEEP_ALIVE } else { std::mem::take(&mut frames.bytes).into() };
            Some((Ok(piece), (follow, frames, stage)))
        })
    }

    /// Until there is something to send. `None` if there never will be.
    async fn advance(&mut self, frames: &mut Frames, stage: Stage) -> Option<Stage> {
        match stage {
            Stage::New => self.reading.begin(frames),
            Stage::Open => {}
            Stage::Over => return None,
        }
        while frames.bytes.is_empty() && !self.reading.is_over() {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                batch = self.follower.next() => if !self.take(frames, batch).await {
                    self.reading.lost(frames);
                    return (!frames.bytes.is_empty()).then_some(Stage::Over);
                },
                () = tokio::time::sleep(SILENCE) => return Some(Stage::Open),
            }
        }
        match (frames.bytes.is_empty(), self.reading.is_over()) {
            (true, true) => None,
            (false, true) => Some(Stage::Over),
            (_, false) => Some(Stage::Open),
        }
    }

    /// False if the log can be read no further.
    async fn take(&mut self, frames: &mut Frames, batch: Result<Option<Batch>, StoreError>) -> bool {
        let Ok(Some(batch)) = batch else { return false };
        for entry in batch.iter() {
            if read(&mut self.reading, entry, frames).await.is_err() {
                return false;
            }
            if self.reading.is_over() {
                break;
            }
        }
        true
    }

    /// All events up to this entry, or so far, as one list between a head and a tail. A piece of the log is read when
    /// the one before was taken.
    pub fn list(
        self,
        end: Seq,
        head: &'static str,
        tail: &'static str,
    ) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        let mut frames = Frames::new(Shape::List(false), Position::default(), self.incarnation);
        frames.bytes.extend_from_slice(head.as_bytes());
        let listing = Listing { follower: self.follower, reading: self.reading, frames, end, tail, over: false };
        futures::stream::try_unfold(listing, |mut listing| async move {
            let piece = listing.next().await?;
            Ok(piece.map(|piece| (piece, listing)))
        })
    }
}

/// Events on their way into a list.
struct Listing<R> {
    follower: Follower,
    reading: R,
    frames: Frames,
    end: Seq,
    tail: &'static str,
    over: bool,
}

impl<R: Reading> Listing<R> {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        while !self.over {
            let batch = if self.follower.place() < self.end { self.follower.stored().await? } else { None };
            match &batch {
                Some(batch) => {
                    for entry in batch.iter().take_while(|entry| entry.seq <= self.end) {
                        read(&mut self.reading, entry, &mut self.frames).await?;
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

async fn read<R: Reading>(reading: &mut R, entry: &Entry, frames: &mut Frames) -> Result<(), StoreError> {
    if reading.lacks(entry) {
        reading.restore(Seq(entry.seq.0.saturating_sub(1))).await?;
    }
    (frames.seq, frames.index) = (entry.seq, 0);
    reading.read(entry, frames);
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    Over,
}
