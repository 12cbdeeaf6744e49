//! How entries become rows and come back: a fact is a row, adjacent deltas of one part share one.
//!
//! A *chunk* holds its deltas' text; a *span* holds only where each delta lies in its whole message.

mod compact;
mod decode;
mod encode;
mod stored_json;
mod times;

use std::borrow::Cow;

use gander_domain::{DeltaKind, Event, MessageId, RunId, Seq, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;
pub(super) use compact::{Compactor, Replacement};
pub(super) use decode::RowDecoder;
pub use decode::join_decoded_deltas;
pub(super) use encode::RowEncoder;
pub(super) use stored_json::parse_stored_json;
use times::Times;

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// One entry.
    Fact,
    /// Deltas with their text.
    Chunk,
    /// Deltas whose text is in a whole message.
    Span,
    /// One entry, a whole message.
    Whole,
}

/// Entries `first` to `last` of a session, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<B = String> {
    pub(super) first: Seq,
    pub(super) last: Seq,
    pub(super) kind: RowKind,
    pub(super) body: B,
}

/// A row whose body is still the database's.
pub(super) type RowRef<'r> = Row<&'r str>;

impl RowKind {
    pub(super) fn code(self) -> i64 {
        match self {
            Self::Fact => 0,
            Self::Chunk => 1,
            Self::Span => 2,
            Self::Whole => 3,
        }
    }

    pub(super) fn from_code(code: i64) -> Result<Self, StoreError> {
        match code {
            0 => Ok(Self::Fact),
            1 => Ok(Self::Chunk),
            2 => Ok(Self::Span),
            3 => Ok(Self::Whole),
            _ => Err(StoreError::Corrupt(format!("row of kind {code}"))),
        }
    }
}

/// A fact as it is written.
#[derive(Serialize)]
struct StoredFactRef<'a> {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Value>,
}

/// A fact as it is read.
#[derive(Deserialize)]
struct StoredFact {
    at: Timestamp,
    #[serde(default)]
    run: Option<RunId>,
    event: Event,
    #[serde(default)]
    meta: Option<Box<Value>>,
}

/// Adjacent deltas of one part.
#[derive(Serialize, Deserialize)]
struct Chunk<'a> {
    message: MessageId,
    part: u32,
    growth: DeltaKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    times: Times,
    /// Each delta's length in bytes.
    cuts: Vec<u32>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// All deltas of a whole message, which is the next entry.
#[derive(Serialize, Deserialize)]
struct Span {
    message: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    times: Times,
    pieces: Vec<SpanPart>,
}

/// The deltas of one part: they begin at its first byte.
#[derive(Serialize, Deserialize)]
struct SpanPart {
    part: u32,
    growth: DeltaKind,
    /// Each delta's length in bytes.
    cuts: Vec<u32>,
}

fn corrupt_row_error(error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
