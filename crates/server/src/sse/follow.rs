//! A session's log as a stream of events: pulled by whoever reads, so a slow reader costs nothing.

use std::convert::Infallible;

use bytes::Bytes;
use futures::Stream;
use gander_domain::{Entry, Seq};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{EventId, KEEP_ALIVE, Position, SILENCE, event};
use crate::hub::{Batch, Follower};
use crate::log::StoreError;

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

/// Events of one entry after another, each with its id.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    incarnation: u32,
    seen: Position,
    seq: Seq,
    index: u32,
}

impl Frames {
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
        event(&mut self.bytes, None, json);
    }

    fn place(&mut self, index: u32, json: &[u8]) {
        let id = EventId { incarnation: self.incarnation, position: Position { seq: self.seq.0, index, answer: 0 } };
        event(&mut self.bytes, Some(&id), json);
    }

    /// Adds an event that has no place in the log: it is not said again to a reader who comes back.
    pub fn aside(&mut self, message: &impl Serialize) {
        let json = serde_json::to_vec(message).expect("wire types are made of what JSON can say");
        event(&mut self.bytes, None, &json);
    }
}

impl<R: Reading> Follow<R> {
    /// The events, as many in one piece as there are. Comments break a long silence.
    pub fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let frames =
            Frames { bytes: Vec::new(), incarnation: self.incarnation, seen: self.seen, seq: Seq::ZERO, index: 0 };
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
                batch = self.follower.next() => if !self.take(frames, batch) {
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
    fn take(&mut self, frames: &mut Frames, batch: Result<Option<Batch>, StoreError>) -> bool {
        let Ok(Some(batch)) = batch else { return false };
        for entry in batch.iter() {
            (frames.seq, frames.index) = (entry.seq, 0);
            self.reading.read(entry, frames);
            if self.reading.is_over() {
                break;
            }
        }
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Open,
    Over,
}
