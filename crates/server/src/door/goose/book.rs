//! What goose clients keep at a server besides sessions: settings, recipes, apps. One small log per principal.

use std::collections::BTreeMap;

use gander_domain::{Principal, Seq};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock;
use crate::log::{ScopeAppend, Store, StoreError, Sync};

/// Facts read in one go.
const PAGE: u32 = 1_000;

/// Things of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shelf {
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
#[derive(Clone, Copy)]
pub struct Book<'a> {
    store: &'a dyn Store,
    principal: &'a Principal,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Fact {
    Put {
        shelf: Shelf,
        key: String,
        value: Value,
    },
    Removed {
        shelf: Shelf,
        key: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

impl<'a> Book<'a> {
    /// This principal's.
    pub fn of(store: &'a dyn Store, principal: &'a Principal) -> Self {
        Self { store, principal }
    }

    /// All things of a kind.
    pub async fn shelf(&self, wanted: Shelf) -> Result<BTreeMap<String, Value>, StoreError> {
        let (mut things, mut after, scope) = (BTreeMap::new(), Seq::ZERO, self.scope());
        loop {
            let page = self.store.read_scope(&scope, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(things) };
            after = last.seq;
            for entry in page {
                match serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null)) {
                    Fact::Put { shelf, key, value } if shelf == wanted => drop(things.insert(key, value)),
                    Fact::Removed { shelf, key } if shelf == wanted => drop(things.remove(&key)),
                    Fact::Put { .. } | Fact::Removed { .. } | Fact::Unknown(_) => {}
                }
            }
        }
    }

    /// One thing.
    pub async fn get(&self, shelf: Shelf, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.shelf(shelf).await?.remove(key))
    }

    /// Keeps something, in place of an older one.
    pub async fn put(&self, shelf: Shelf, key: &str, value: Value) -> Result<(), StoreError> {
        self.append(&Fact::Put { shelf, key: key.to_owned(), value }).await
    }

    /// Forgets something; false if there was nothing.
    pub async fn remove(&self, shelf: Shelf, key: &str) -> Result<bool, StoreError> {
        if self.get(shelf, key).await?.is_none() {
            return Ok(false);
        }
        self.append(&Fact::Removed { shelf, key: key.to_owned() }).await?;
        Ok(true)
    }

    async fn append(&self, fact: &Fact) -> Result<(), StoreError> {
        let fact = serde_json::to_value(fact).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let append = ScopeAppend { scope: self.scope(), at: clock::now(), facts: vec![fact], after: None };
        self.store.append_scope(append, Sync::Barrier).await.map(drop)
    }

    fn scope(&self) -> String {
        format!("goose/{}", self.principal)
    }
}
