//! What goose clients keep at a server besides sessions: settings, recipes, apps. One small log per principal.

use std::collections::BTreeMap;

use gander_domain::Principal;
use gander_store::{Place, Saying, Store, StoreError, append_fact, read_on, shorten};
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
#[derive(Clone, Copy)]
pub struct UserStore<'a> {
    store: &'a dyn Store,
    principal: &'a Principal,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Fact {
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
    #[serde(untagged)]
    Unknown(Value),
}

/// What a book says up to a place.
#[derive(Default)]
struct Folded {
    things: BTreeMap<(Collection, String), Value>,
    /// It holds facts that only another version knows.
    strange: bool,
}

impl<'a> UserStore<'a> {
    /// This principal's.
    pub fn open(store: &'a dyn Store, principal: &'a Principal) -> Self {
        Self { store, principal }
    }

    /// All things of a kind.
    pub async fn collection(&self, wanted: Collection) -> Result<BTreeMap<String, Value>, StoreError> {
        let things = self.fold().await?.1.things.into_iter();
        Ok(things.filter(|((collection, _), _)| *collection == wanted).map(|((_, key), value)| (key, value)).collect())
    }

    /// One thing.
    pub async fn get(&self, collection: Collection, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.collection(collection).await?.remove(key))
    }

    /// Keeps something, in place of an older one.
    pub async fn put(&self, collection: Collection, key: &str, value: Value) -> Result<(), StoreError> {
        self.append(&Fact::Put { collection, key: key.to_owned(), value }).await
    }

    /// Forgets something; false if there was nothing.
    pub async fn remove(&self, collection: Collection, key: &str) -> Result<bool, StoreError> {
        if self.get(collection, key).await?.is_none() {
            return Ok(false);
        }
        self.append(&Fact::Removed { collection, key: key.to_owned() }).await?;
        Ok(true)
    }

    async fn fold(&self) -> Result<(Place, Folded), StoreError> {
        let mut folded = Folded::default();
        let take = |saying| match saying {
            Saying::Anew => folded.things.clear(),
            Saying::Fact(fact) => match serde_json::from_value(fact).unwrap_or(Fact::Unknown(Value::Null)) {
                Fact::Put { collection, key, value } => drop(folded.things.insert((collection, key), value)),
                Fact::Removed { collection, key } => drop(folded.things.remove(&(collection, key))),
                Fact::Unknown(_) => folded.strange = true,
            },
        };
        let place = read_on(self.store, &self.scope(), Place::default(), take).await?;
        Ok((place, folded))
    }

    /// A log that is long for what it says says it anew first.
    async fn append(&self, fact: &Fact) -> Result<(), StoreError> {
        let (place, Folded { things, strange }) = self.fold().await?;
        if !strange && place.is_long(things.len()) {
            let put = |((collection, key), value)| serde_json::to_value(Fact::Put { collection, key, value });
            let facts = things.into_iter().map(put).collect::<Result<Vec<_>, _>>();
            let facts = facts.map_err(|error| StoreError::Invalid(error.to_string()))?;
            shorten(self.store, &self.scope(), place, facts).await?;
        }
        append_fact(self.store, &self.scope(), fact).await
    }

    fn scope(&self) -> String {
        format!("goose/{}", self.principal)
    }
}
