//! What is known of push notifications, as facts in a log of their own, which is kept short.

use std::collections::BTreeMap;
use std::sync::Arc;

use gander_domain::{RunId, Seq};
use serde::{Deserialize, Serialize};

use super::Wish;
use crate::clock;
use crate::log::{Due, Place, Saying, ScopeAppend, Store, StoreError, Sync, read_on, shorten};

/// The log's name; one that an earlier version shortened has a number behind it.
const SCOPE: &str = "a2a/push";

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
    due: Due,
}

/// What the log says.
#[derive(Default)]
struct Folded {
    wishes: Wishes,
    /// It holds facts that only another version knows.
    strange: bool,
}

impl Facts {
    /// Reads everything. Of several logs the last one counts: an earlier version that was cut off left the others.
    pub(super) async fn load(store: Arc<dyn Store>) -> Result<(Self, Vec<(Wish, Over)>), StoreError> {
        let mut scopes: Vec<String> = Vec::new();
        while let Some((name, _)) = store.scopes(SCOPE, scopes.last().map(String::as_str), 1).await?.pop() {
            scopes.push(name);
        }
        let scope = scopes.pop().unwrap_or_else(|| SCOPE.to_owned());
        for old in scopes {
            store.delete_scope(&old).await?;
        }
        let facts = Self { store, scope, due: Due::default() };
        let folded = facts.tidy().await?;
        Ok((facts, folded.wishes.into_values().collect()))
    }

    async fn read(&self) -> Result<(Place, Folded), StoreError> {
        let mut folded = Folded::default();
        let take = |saying| match saying {
            Saying::Anew => folded.wishes.clear(),
            Saying::Fact(fact) => match serde_json::from_value(fact) {
                Ok(fact) => fold(&mut folded.wishes, fact),
                Err(error) => {
                    tracing::warn!(%error, "unknown fact about a push notification");
                    folded.strange = true;
                }
            },
        };
        let place = read_on(&*self.store, &self.scope, Place::default(), take).await?;
        Ok((place, folded))
    }

    /// A log that is long for what it says says it anew. Gives what it says.
    async fn tidy(&self) -> Result<Folded, StoreError> {
        let (mut place, folded) = self.read().await?;
        let live = folded.wishes.len() * 2;
        if !folded.strange && place.is_long(live) {
            let facts = folded.wishes.values().flat_map(again).filter_map(|fact| serde_json::to_value(fact).ok());
            place = shorten(&*self.store, &self.scope, place, facts.collect()).await?;
        }
        self.due.set(place, live);
        Ok(folded)
    }

    pub(super) async fn write(&self, fact: &Fact, sync: Sync) -> Result<(), StoreError> {
        let facts = vec![serde_json::to_value(fact).map_err(|error| StoreError::Invalid(error.to_string()))?];
        let append = ScopeAppend { scope: self.scope.clone(), at: clock::now(), facts, after: None };
        self.store.append_scope(append, sync).await?;
        if self.due.count()
            && let Err(error) = self.tidy().await
        {
            tracing::warn!(%error, "the log of push notifications stays long");
            self.due.put_off();
        }
        Ok(())
    }
}

/// What says a wish anew.
fn again((wish, state): &(Wish, Over)) -> impl Iterator<Item = Fact> {
    let over = || Fact::Over { run: wish.run, id: wish.config.id.clone() };
    let over = (*state == Over::Yes).then(over);
    [Fact::Wanted { wish: Box::new(wish.clone()) }].into_iter().chain(over)
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
    use crate::log::{MemoryStore, longest};

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
            shelf: None,
            first: Seq(1),
            told: Seq(1),
            dialect: Dialect::V1,
            config,
        }
    }

    #[tokio::test]
    async fn the_log_stays_short_and_says_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        // An earlier version began a log anew and was cut off before the old one was gone.
        let (one, two) = (wish(2), wish(3));
        let old = Facts { store: Arc::clone(&store), scope: SCOPE.to_owned(), due: Due::default() };
        old.write(&Fact::Wanted { wish: Box::new(wish(4)) }, Sync::Relaxed).await.expect("written");
        let new = Facts { scope: format!("{SCOPE}.{:020}", 1), ..old };
        new.write(&Fact::Wanted { wish: Box::new(one.clone()) }, Sync::Relaxed).await.expect("written");
        let (facts, found) = Facts::load(Arc::clone(&store)).await.expect("loaded");
        assert_eq!(found, [(one.clone(), Over::No)]);
        facts.write(&Fact::Wanted { wish: Box::new(two.clone()) }, Sync::Relaxed).await.expect("written");
        facts.write(&Fact::Over { run: two.run, id: "c".to_owned() }, Sync::Relaxed).await.expect("written");
        for seq in 2..=10_000 {
            let told = Fact::Told { run: one.run, id: "c".to_owned(), seq: Seq(seq) };
            facts.write(&told, Sync::Relaxed).await.expect("written");
        }
        let length = store.read_scope(&facts.scope, Seq::ZERO, 20_000).await.expect("read").len();
        assert!(length <= longest(4) + 1, "{length}");
        let (_, found) = Facts::load(Arc::clone(&store)).await.expect("loaded");
        assert_eq!(found, [(Wish { told: Seq(10_000), ..one }, Over::No), (two, Over::Yes)]);
        assert_eq!(store.scopes(SCOPE, None, 10).await.expect("listed").len(), 1);
    }
}
