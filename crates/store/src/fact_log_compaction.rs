//! Logs of no session, kept short: once a log is long for what it says, one fact says it all anew and the rest goes.
//!
//! Every reader ends with the same, wherever it was: that fact stands at the place of the last one that it says again,
//! so whoever has read less reads it whole, and whoever has read as much knows it.

use std::sync::atomic::{AtomicUsize, Ordering};

use gander_domain::{Seq, Timestamp};
use serde_json::{Map, Value};

use super::{Store, StoreError};

/// The one key of a fact that says everything anew.
const ANEW: &str = "said_anew";

/// A log is not looked at before it has more entries than this.
const FEW: usize = 256;

/// So many entries may stand for each thing that a log says in the end.
const WASTE: usize = 4;

/// How far a reader of such a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The last entry that was read.
    pub end: Seq,
    pub(crate) at: Timestamp,
    pub(crate) entries: usize,
}

impl LogPosition {
    /// True if a log that says so many things in the end is worth shortening.
    pub fn is_long(self, live: usize) -> bool {
        self.entries > longest_fact_log(live)
    }
}

/// When a log that is mostly written is looked at again: once it may have become long.
#[derive(Debug, Default)]
pub struct CompactionDue(AtomicUsize);

impl CompactionDue {
    /// The log is read to here, and says so many things.
    pub fn set(&self, place: LogPosition, live: usize) {
        self.0.store(longest_fact_log(live).saturating_sub(place.entries).max(1), Ordering::SeqCst);
    }

    /// One more entry was written; true if it is time to look. It is at once if the log was never read: nobody knows how
    /// long it is.
    pub fn count(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) <= 1
    }

    /// It could not be read: later, then.
    pub fn put_off(&self) {
        self.0.store(FEW, Ordering::SeqCst);
    }
}

/// How long a log that says so many things in the end may be.
pub fn longest_fact_log(live: usize) -> usize {
    FEW.max(live.saturating_mul(WASTE))
}

/// Puts these facts in place of everything up to a place, which they must say as a whole. Whoever folds a log that
/// holds facts of a kind it does not know leaves it alone: they would be lost.
pub async fn shorten_fact_log(
    store: &dyn Store,
    scope: &str,
    place: LogPosition,
    facts: Vec<Value>,
) -> Result<LogPosition, StoreError> {
    let fact = Value::Object(Map::from_iter([(ANEW.to_owned(), Value::Array(facts))]));
    store.compact_scope(scope, place.end, place.at, fact).await?;
    Ok(LogPosition { entries: 1, ..place })
}

/// The facts in a compacted entry; any other fact is given back.
pub(crate) fn compacted_log_facts(mut fact: Value) -> Result<Vec<Value>, Value> {
    let anew = fact.as_object_mut().filter(|fields| fields.len() == 1).and_then(|fields| fields.get_mut(ANEW));
    match anew.and_then(Value::as_array_mut).map(std::mem::take) {
        Some(facts) => Ok(facts),
        None => Err(fact),
    }
}
