//! What goose clients keep at a server besides sessions: settings, recipes, apps. One small log per principal.

use std::collections::BTreeMap;
use std::sync::Arc;

use gander_domain::Principal;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Things of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collection {
    /// Settings by key.
    Config,
    /// Preferences of a page by key.
    Preference,
    /// Recipes by id.
    Recipe,
    /// Small web pages by name.
    App,
    /// Changed prompts by name.
    Prompt,
    /// What was said about sessions after they began, by id.
    Session,
    /// Settings of recipes, such as their slash command, by id.
    Slash,
}

/// One principal's things.
pub struct UserStore {
    log: FactLog<Collections>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum CollectionFact {
    Put {
        #[serde(rename = "shelf")]
        collection: Collection,
        key: String,
        value: Value,
    },
    Removed {
        #[serde(rename = "shelf")]
        collection: Collection,
        key: String,
    },
}

#[derive(Default)]
struct Collections(BTreeMap<(Collection, String), Value>);

impl FactState for Collections {
    type Fact = CollectionFact;

    fn apply(&mut self, fact: CollectionFact, _: FactEntry) {
        match fact {
            CollectionFact::Put { collection, key, value } => drop(self.0.insert((collection, key), value)),
            CollectionFact::Removed { collection, key } => drop(self.0.remove(&(collection, key))),
        }
    }

    fn facts(&self) -> Vec<CollectionFact> {
        let put = |((collection, key), value): (&(Collection, String), &Value)| CollectionFact::Put {
            collection: *collection,
            key: key.clone(),
            value: value.clone(),
        };
        self.0.iter().map(put).collect()
    }

    fn approximate_fact_count(&self) -> usize {
        self.0.len()
    }
}

impl UserStore {
    /// This principal's.
    pub fn open(store: &Arc<dyn Store>, principal: &Principal) -> Self {
        Self { log: FactLog::new(Arc::clone(store), format!("goose/{principal}")) }
    }

    /// All things of a kind.
    pub async fn collection(&self, wanted: Collection) -> Result<BTreeMap<String, Value>, StoreError> {
        let Collections(things) = self.log.read_folded().await?.state;
        let of_kind = things.into_iter().filter(|((collection, _), _)| *collection == wanted);
        Ok(of_kind.map(|((_, key), value)| (key, value)).collect())
    }

    /// One thing.
    pub async fn get(&self, collection: Collection, key: &str) -> Result<Option<Value>, StoreError> {
        let Collections(mut things) = self.log.read_folded().await?.state;
        Ok(things.remove(&(collection, key.to_owned())))
    }

    /// Keeps something, in place of an older one.
    pub async fn put(&self, collection: Collection, key: &str, value: Value) -> Result<(), StoreError> {
        let put = CollectionFact::Put { collection, key: key.to_owned(), value };
        self.log.append_fact(&put).await.map(drop)
    }

    /// Forgets something; false if there was nothing.
    pub async fn remove(&self, collection: Collection, key: &str) -> Result<bool, StoreError> {
        if self.get(collection, key).await?.is_none() {
            return Ok(false);
        }
        self.log.append_fact(&CollectionFact::Removed { collection, key: key.to_owned() }).await?;
        Ok(true)
    }
}
