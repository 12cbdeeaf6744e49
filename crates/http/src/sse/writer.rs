//! Writes the events of a log's entries, each with its id, or as the items of one list.

use gander_domain::Seq;
use serde::Serialize;

use super::{EventId, StreamPosition, append_sse_event};

/// Events of one entry after another: each with its id, or as the items of one list.
#[derive(Debug)]
pub struct SseWriter {
    pub(super) bytes: Vec<u8>,
    shape: SseShape,
    incarnation: u32,
    seen: StreamPosition,
    pub(super) seq: Seq,
    pub(super) index: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SseShape {
    Events,
    /// A list; whether it has an item already.
    List(bool),
}

impl SseWriter {
    pub(super) fn new(shape: SseShape, seen: StreamPosition, incarnation: u32) -> Self {
        Self { bytes: Vec::new(), shape, incarnation, seen, seq: Seq::ZERO, index: 0 }
    }

    fn push_frame(&mut self, id: Option<&EventId>, json: &[u8]) {
        match self.shape {
            SseShape::Events => append_sse_event(&mut self.bytes, id.map(|id| id as &dyn std::fmt::Display), json),
            SseShape::List(more) => {
                self.bytes.extend_from_slice(if more { b"," } else { b"" });
                self.bytes.extend_from_slice(json);
                self.shape = SseShape::List(true);
            }
        }
    }

    /// Adds an event, unless the reader has it.
    pub fn write_event(&mut self, message: &impl Serialize) {
        let index = self.index;
        self.index += 1;
        if self.seen.covers(self.seq.0, index) && self.seen != StreamPosition::default() {
            return;
        }
        let json = serde_json::to_vec(message).expect("wire types are made of what JSON can say");
        self.push_indexed(index, &json);
    }

    /// Adds an event that is JSON already, unless the reader has it.
    pub fn write_json(&mut self, json: &[u8]) {
        let index = self.index;
        self.index += 1;
        if !self.seen.covers(self.seq.0, index) || self.seen == StreamPosition::default() {
            self.push_indexed(index, json);
        }
    }

    /// Adds an event that is JSON already and has no place in the log.
    pub fn write_unlogged_json(&mut self, json: &[u8]) {
        self.push_frame(None, json);
    }

    fn push_indexed(&mut self, index: u32, json: &[u8]) {
        let id =
            EventId { incarnation: self.incarnation, position: StreamPosition { seq: self.seq.0, index, answer: 0 } };
        self.push_frame(Some(&id), json);
    }

    /// Adds an event that has no place in the log: it is not said again to a reader who comes back.
    pub fn write_unlogged(&mut self, message: &impl Serialize) {
        let json = serde_json::to_vec(message).expect("wire types are made of what JSON can say");
        self.push_frame(None, &json);
    }
}
