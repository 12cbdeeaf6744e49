//! What is known of push notifications, as facts in a log of their own. Each start makes a long log short again.

use std::collections::BTreeMap;
use std::sync::Arc;

use gander_domain::{RunId, Seq};
use serde::{Deserialize, Serialize};

use super::Wish;
use crate::clock;
use crate::log::{ScopeAppend, Store, StoreError, Sync};

/// The log's name; a shortened one has a number behind it.
const SCOPE: &str = "a2a/push";

/// Facts read in one go.
const PAGE: u32 = 1_000;

/// A log that has so many facts for each that is needed, and not just a few, is worth shortening.
const WASTE: usize = 2;
const FEW: usize = 1_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(super) enum Fact {
    Wanted { wish: Box<Wish> },
    Told { run: RunId, id: String, seq: Seq },
    Over { run: RunId, id: String },
    Removed { run: RunId, id: String },
}

/// Whether a receiver was told everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Yes,
    No,
}

/// What is wanted of each run, by the wish's name.
type Wishes = BTreeMap<(RunId, String), (Wish, Over)>;

/// The log of these facts.
pub(super) struct Facts {
    store: Arc<dyn Store>,
    scope: String,
}

impl Facts {
    /// Reads everything. A log that is mostly history is written anew, in one append, before the old one goes:
    /// whoever is cut off in between finds both and takes the new one.
    pub(super) async fn load(store: Arc<dyn Store>) -> Result<(Self, Vec<(Wish, Over)>), StoreError> {
        let mut scopes: Vec<String> = Vec::new();
        while let Some((name, _)) = store.scopes(SCOPE, scopes.last().map(String::as_str), 1).await?.pop() {
            scopes.push(name);
        }
        let scope = scopes.pop().unwrap_or_else(|| SCOPE.to_owned());
        for old in scopes {
            store.delete_scope(&old).await?;
        }
        let mut facts = Self { store, scope };
        let (wishes, read) = facts.read().await?;
        let wishes: Vec<(Wish, Over)> = wishes.into_values().collect();
        if read > FEW && read > WASTE * 2 * wishes.len() {
            facts.shorten(&wishes).await?;
        }
        Ok((facts, wishes))
    }

    async fn read(&self) -> Result<(Wishes, usize), StoreError> {
        let (mut wishes, mut after, mut read) = (Wishes::new(), Seq::ZERO, 0);
        loop {
            let page = self.store.read_scope(&self.scope, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok((wishes, read)) };
            after = last.seq;
            read += page.len();
            for entry in page {
                match serde_json::from_value(entry.fact) {
                    Ok(fact) => fold(&mut wishes, fact),
                    Err(error) => tracing::warn!(%error, "unknown fact about a push notification"),
                }
            }
        }
    }

    async fn shorten(&mut self, wishes: &[(Wish, Over)]) -> Result<(), StoreError> {
        let number: u64 = self.scope.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        // Names are read in order, so all numbers have the same length.
        let next = format!("{SCOPE}.{:020}", number + 1);
        let over = |wish: &Wish| Fact::Over { run: wish.run, id: wish.config.id.clone() };
        let facts = wishes.iter().flat_map(|(wish, state)| {
            let wanted = Fact::Wanted { wish: Box::new(wish.clone()) };
            [Some(wanted), (*state == Over::Yes).then(|| over(wish))].into_iter().flatten()
        });
        let facts: Vec<Fact> = facts.collect();
        if !facts.is_empty() {
            self.append(&next, &facts, Sync::Barrier).await?;
        }
        self.store.delete_scope(&self.scope).await?;
        self.scope = next;
        Ok(())
    }

    pub(super) async fn write(&self, fact: &Fact, sync: Sync) -> Result<(), StoreError> {
        self.append(&self.scope, std::slice::from_ref(fact), sync).await
    }

    async fn append(&self, scope: &str, facts: &[Fact], sync: Sync) -> Result<(), StoreError> {
        let facts = facts.iter().filter_map(|fact| serde_json::to_value(fact).ok()).collect();
        let append = ScopeAppend { scope: scope.to_owned(), at: clock::now(), facts, after: None };
        self.store.append_scope(append, sync).await.map(drop)
    }
}

fn fold(wishes: &mut Wishes, fact: Fact) {
    match fact {
        Fact::Wanted { wish } => {
            wishes.insert((wish.run, wish.config.id.clone()), (*wish, Over::No));
        }
        Fact::Told { run, id, seq } => {
            if let Some((wish, _)) = wishes.get_mut(&(run, id)) {
                wish.told = seq;
            }
        }
        Fact::Over { run, id } => {
            if let Some((_, over)) = wishes.get_mut(&(run, id)) {
                *over = Over::Yes;
            }
        }
        Fact::Removed { run, id } => drop(wishes.remove(&(run, id))),
    }
}

#[cfg(test)]
mod tests {
    use gander_domain::{Principal, SessionId};
    use gander_wire::a2a::{Dialect, PushConfig};
    use uuid::Uuid;

    use super::*;
    use crate::log::MemoryStore;

    fn wish(n: u128) -> Wish {
        let run = RunId::new(Uuid::from_u128(n));
        let config = PushConfig {
            id: "c".to_owned(),
            task_id: run.to_string(),
            url: "https://example.com".to_owned(),
            token: None,
            authentication: None,
        };
        Wish {
            principal: Principal::owner(),
            session: SessionId::new(Uuid::from_u128(1)),
            run,
            context: "x".to_owned(),
            first: Seq(1),
            told: Seq(1),
            dialect: Dialect::V1,
            config,
        }
    }

    #[tokio::test]
    async fn a_long_log_is_short_after_the_next_start_and_says_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (facts, _) = Facts::load(Arc::clone(&store)).await.expect("empty");
        let (one, two) = (wish(2), wish(3));
        for wish in [&one, &two] {
            facts.write(&Fact::Wanted { wish: Box::new(wish.clone()) }, Sync::Relaxed).await.expect("written");
        }
        for seq in 2..=1_200 {
            let told = Fact::Told { run: one.run, id: "c".to_owned(), seq: Seq(seq) };
            facts.write(&told, Sync::Relaxed).await.expect("written");
        }
        facts.write(&Fact::Over { run: two.run, id: "c".to_owned() }, Sync::Relaxed).await.expect("written");
        let expected = vec![(Wish { told: Seq(1_200), ..one }, Over::No), (two, Over::Yes)];
        for round in 0..2 {
            let (facts, found) = Facts::load(Arc::clone(&store)).await.expect("loaded");
            assert_eq!(found, expected, "{round}");
            assert_eq!(facts.scope, format!("{SCOPE}.{:020}", 1));
            assert_eq!(store.read_scope(&facts.scope, Seq::ZERO, 100).await.expect("read").len(), 3);
            assert_eq!(store.scopes(SCOPE, None, 10).await.expect("listed").len(), 1);
        }
    }
}
