//! One log of facts of no session: appended to, folded into a state, and compacted while it is written.

use std::marker::PhantomData;
use std::sync::Arc;

use gander_domain::{Seq, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fact_log_compaction::{CompactionDue, LogPosition, compacted_log_facts, shorten_fact_log};
use super::{Durability, SCOPE_PAGE, ScopeAppend, Store, StoreError, clock};

/// What a log of facts folds to.
pub trait FactState: Default + Send {
    /// One fact, as it is stored. What does not parse is of a later version: it is skipped, and the log is not compacted.
    type Fact: Serialize + DeserializeOwned + Send + Sync;

    /// Applies a fact.
    fn apply(&mut self, fact: Self::Fact, written: FactEntry);

    /// Facts that fold to this state: what a compacted log holds. Whatever of an entry's place and time counts must be in
    /// them, since they all get those of one entry.
    fn facts(&self) -> Vec<Self::Fact>;

    /// How much this state says: a log may have a few entries for each. Large states count without making their facts.
    fn approximate_fact_count(&self) -> usize {
        self.facts().len()
    }
}

/// Where and when a fact was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactEntry {
    /// Its number in the log.
    pub seq: Seq,
    /// The time of writing.
    pub at: Timestamp,
}

/// What a log says up to one of its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldedFacts<S> {
    /// The fold of everything up to there.
    pub state: S,
    position: LogPosition,
    /// Facts that this version cannot read would be lost if the log were compacted.
    has_unknown: bool,
}

impl<S> FoldedFacts<S> {
    /// The last entry that is in it.
    pub fn last_seq(&self) -> Seq {
        self.position.end
    }
}

/// The log of one scope. It stays short: at most a few entries per fact of its state.
///
/// A log that is kept for as long as the server lives is compacted by [`FactLog::append`]. One that is made for a single
/// call, as those of principals and sessions are, is compacted the same way: `append` reads a log of unknown length.
pub struct FactLog<S> {
    store: Arc<dyn Store>,
    scope: String,
    due: CompactionDue,
    state: PhantomData<fn() -> S>,
}

impl<S: FactState> FactLog<S> {
    /// The log of this scope. Nothing is read yet.
    pub fn new(store: Arc<dyn Store>, scope: impl Into<String>) -> Self {
        Self { store, scope: scope.into(), due: CompactionDue::default(), state: PhantomData }
    }

    /// Its scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Reads the whole log, and writes nothing.
    pub async fn read_folded(&self) -> Result<FoldedFacts<S>, StoreError> {
        let mut folded = FoldedFacts::default();
        self.read_on(&mut folded).await?;
        Ok(folded)
    }

    /// Reads what was added since, and writes nothing. Whoever was read to before a compaction reads the compacted entry
    /// whole, since it stands at the place of the last one that it replaces.
    pub async fn read_on(&self, folded: &mut FoldedFacts<S>) -> Result<(), StoreError> {
        let FoldedFacts { state, position, has_unknown } = folded;
        loop {
            let page = self.store.read_scope(&self.scope, position.end, SCOPE_PAGE).await?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in page {
                let written = FactEntry { seq: entry.seq, at: entry.at };
                let mut apply = |state: &mut S, fact: Value| match serde_json::from_value(fact) {
                    Ok(fact) => state.apply(fact, written),
                    Err(_) => *has_unknown = true,
                };
                *position = LogPosition { end: entry.seq, at: entry.at, entries: position.entries + 1 };
                match compacted_log_facts(entry.fact) {
                    Ok(facts) => {
                        position.entries = 1;
                        *state = S::default();
                        facts.into_iter().for_each(|fact| apply(state, fact));
                    }
                    Err(fact) => apply(state, fact),
                }
            }
        }
    }

    /// Reads the whole log. One that is long for what it holds is compacted.
    pub async fn fold_all(&self) -> Result<S, StoreError> {
        let mut folded = self.read_folded().await?;
        self.compact_if_long(&mut folded).await?;
        Ok(folded.state)
    }

    /// Compacts a log that is long for what it holds; true if it was.
    pub async fn compact_if_long(&self, folded: &mut FoldedFacts<S>) -> Result<bool, StoreError> {
        let size = folded.state.approximate_fact_count();
        let compacted = folded.position.is_long(size) && self.compact_now(folded).await?;
        self.due.set(folded.position, size);
        Ok(compacted)
    }

    /// Compacts the log whatever its length, so that what was removed is not on the disk any more. False if it holds facts
    /// of a later version: they would be lost.
    pub async fn compact_now(&self, folded: &mut FoldedFacts<S>) -> Result<bool, StoreError> {
        if folded.has_unknown {
            return Ok(false);
        }
        let facts = folded.state.facts().iter().map(fact_value).collect::<Result<Vec<_>, _>>()?;
        folded.position = shorten_fact_log(&*self.store, &self.scope, folded.position, facts).await?;
        Ok(true)
    }

    /// Writes a fact, safe from a power cut. From time to time the log is compacted afterwards; if that fails the fact is
    /// written all the same.
    pub async fn append_fact(&self, fact: &S::Fact) -> Result<FactEntry, StoreError> {
        self.append_with(fact, Durability::Barrier).await
    }

    /// The same, as durable as it must be.
    pub async fn append_with(&self, fact: &S::Fact, durability: Durability) -> Result<FactEntry, StoreError> {
        let entry = self.write_fact(fact, None, durability).await?;
        if self.due.count()
            && let Err(error) = self.fold_all().await
        {
            tracing::warn!(%error, scope = self.scope, "a log of facts stays long");
            self.due.put_off();
        }
        Ok(entry)
    }

    /// Writes a fact right behind the last entry that was read, safe from a power cut: [`StoreError::Gap`] if there is
    /// another one by now.
    pub async fn append_after(&self, folded: &FoldedFacts<S>, fact: &S::Fact) -> Result<FactEntry, StoreError> {
        self.write_fact(fact, Some(folded.last_seq()), Durability::Barrier).await
    }

    async fn write_fact(&self, fact: &S::Fact, after: Option<Seq>, sync: Durability) -> Result<FactEntry, StoreError> {
        let at = clock::current_time();
        let append = ScopeAppend { scope: self.scope.clone(), at, facts: vec![fact_value(fact)?], after };
        let seq = self.store.append_scope(append, sync).await?;
        Ok(FactEntry { seq, at })
    }
}

fn fact_value(fact: &impl Serialize) -> Result<Value, StoreError> {
    serde_json::to_value(fact).map_err(|error| StoreError::Invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{MemoryStore, append_fact, longest_fact_log, read_scope_all};

    #[derive(Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Fact {
        Set {
            key: String,
            value: u64,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            at: Option<Timestamp>,
        },
        Removed {
            key: String,
        },
    }

    #[derive(Default, Debug, PartialEq)]
    struct Values(BTreeMap<String, (u64, Timestamp)>);

    impl FactState for Values {
        type Fact = Fact;

        fn apply(&mut self, fact: Fact, written: FactEntry) {
            match fact {
                Fact::Set { key, value, at } => drop(self.0.insert(key, (value, at.unwrap_or(written.at)))),
                Fact::Removed { key } => drop(self.0.remove(&key)),
            }
        }

        fn facts(&self) -> Vec<Fact> {
            let set = |(key, (value, at)): (&String, &(u64, Timestamp))| Fact::Set {
                key: key.clone(),
                value: *value,
                at: Some(*at),
            };
            self.0.iter().map(set).collect()
        }
    }

    fn set(key: &str, value: u64) -> Fact {
        Fact::Set { key: key.to_owned(), value, at: None }
    }

    #[tokio::test]
    async fn a_log_that_is_written_often_stays_short_and_folds_to_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let log: FactLog<Values> = FactLog::new(Arc::clone(&store), "a");
        let first = log.append_fact(&set("first", 1)).await.unwrap();
        for value in 0..5_000 {
            log.append_fact(&set("often", value)).await.unwrap();
        }
        log.append_fact(&set("gone", 1)).await.unwrap();
        log.append_fact(&Fact::Removed { key: "gone".to_owned() }).await.unwrap();
        assert!(read_scope_all(&*store, "a").await.unwrap().len() <= longest_fact_log(3) + 1);
        let folded = FactLog::<Values>::new(Arc::clone(&store), "a").fold_all().await.unwrap();
        assert_eq!(folded.0.len(), 2);
        assert_eq!(folded.0["first"], (1, first.at), "what was written first keeps its time");
        assert_eq!(folded.0["often"].0, 4_999);
    }

    #[tokio::test]
    async fn rows_of_earlier_versions_fold_and_unknown_ones_are_kept() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        append_fact(&*store, "a", &json!({ "kind": "set", "key": "old", "value": 7 })).await.unwrap();
        append_fact(&*store, "a", &json!({ "kind": "of_tomorrow", "key": "old" })).await.unwrap();
        let log: FactLog<Values> = FactLog::new(Arc::clone(&store), "a");
        for value in 0..1_000 {
            log.append_fact(&set("often", value)).await.unwrap();
        }
        assert_eq!(log.fold_all().await.unwrap().0["old"].0, 7);
        let rows = read_scope_all(&*store, "a").await.unwrap();
        assert_eq!(rows.len(), 1_002, "a log with facts of another version is not compacted");
    }

    #[tokio::test]
    async fn a_reader_who_goes_on_after_a_compaction_ends_with_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let log: FactLog<Values> = FactLog::new(Arc::clone(&store), "a");
        log.append_fact(&set("gone", 1)).await.unwrap();
        log.append_fact(&set("kept", 2)).await.unwrap();
        let mut reader = log.read_folded().await.unwrap();
        log.append_fact(&Fact::Removed { key: "gone".to_owned() }).await.unwrap();
        let mut folded = log.read_folded().await.unwrap();
        assert!(log.compact_now(&mut folded).await.unwrap());
        let rows = read_scope_all(&*store, "a").await.unwrap();
        assert_eq!(rows.len(), 1);
        assert!(!rows[0].fact.to_string().contains("gone"), "what was removed is not on the disk: {}", rows[0].fact);
        log.read_on(&mut reader).await.unwrap();
        assert_eq!(reader, folded);
        assert_eq!(log.append_after(&reader, &set("next", 3)).await.unwrap().seq, reader.last_seq().next());
        let late = log.append_after(&reader, &set("late", 4)).await;
        assert!(matches!(late, Err(StoreError::Gap { .. })), "{late:?}");
    }
}
