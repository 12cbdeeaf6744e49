//! Recipes at work: which one a session follows, and which ones people call by a slash.

pub mod apply;
mod extensions;
mod ready;
mod slash;
mod sub;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::recipe::Recipe;
use gander_domain::{Principal, Seq, SessionId};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::door::goose::{Book, Shelf};
use crate::log::{ScopeAppend, Store, StoreError, Sync};

pub use apply::{Begun, Wish, apply};
pub use extensions::{Wanted, wanted};
pub use ready::{file, ready};
pub use slash::{Slash, expanded};
pub use sub::subs;

/// Logs of what sessions follow begin like this.
const SCOPE: &str = "recipe/";

/// Facts read in one go.
const PAGE: u32 = 1_000;

/// Which recipes are in use.
pub struct Recipes {
    store: Arc<dyn Store>,
    /// Sessions that follow one: most do not, and their runs need not look.
    following: Mutex<HashSet<SessionId>>,
    /// What people call by a slash, as far as somebody asked.
    slashes: Mutex<HashMap<Principal, Arc<[Slash]>>>,
}

/// A recipe that a session follows, filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// The recipe.
    pub recipe: Recipe,
    /// Its folder, if it came from a file.
    pub folder: Option<String>,
}

impl Recipes {
    /// Those in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let (mut following, mut after) = (HashSet::new(), None::<String>);
        loop {
            let page = store.scopes(SCOPE, after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            following.extend(page.iter().filter_map(|(scope, _)| scope.strip_prefix(SCOPE)?.parse::<SessionId>().ok()));
        }
        Ok(Self { store, following: Mutex::new(following), slashes: Mutex::default() })
    }

    /// True if the session follows one.
    pub fn is_followed(&self, session: SessionId) -> bool {
        lock(&self.following).contains(&session)
    }

    /// The recipe that a session follows.
    pub async fn of(&self, session: SessionId) -> Result<Option<Followed>, StoreError> {
        if !lock(&self.following).contains(&session) {
            return Ok(None);
        }
        let (scope, mut after, mut found) = (format!("{SCOPE}{session}"), Seq::ZERO, None);
        loop {
            let page = self.store.read_scope(&scope, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.seq;
            found = page.into_iter().rev().find_map(|entry| serde_json::from_value(entry.fact).ok()).or(found);
        }
    }

    /// From now on the session follows this one.
    pub async fn follow(&self, session: SessionId, followed: &Followed) -> Result<(), StoreError> {
        let fact = serde_json::to_value(followed).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let scope = format!("{SCOPE}{session}");
        let append = ScopeAppend { scope, at: clock::now(), facts: vec![fact], after: None };
        self.store.append_scope(append, Sync::Barrier).await?;
        lock(&self.following).insert(session);
        Ok(())
    }

    /// What somebody calls by a slash.
    pub async fn slashes(&self, principal: &Principal) -> Result<Arc<[Slash]>, StoreError> {
        if let Some(known) = lock(&self.slashes).get(principal) {
            return Ok(Arc::clone(known));
        }
        let book = Book::of(&*self.store, principal);
        let (recipes, names) = (book.shelf(Shelf::Recipe).await?, book.shelf(Shelf::Slash).await?);
        let slashes: Arc<[Slash]> =
            names.iter().filter_map(|(id, name)| Slash::new(name.as_str()?, &recipes.get(id)?["recipe"])).collect();
        lock(&self.slashes).insert(principal.clone(), Arc::clone(&slashes));
        Ok(slashes)
    }

    /// Somebody saved or removed a recipe or its name.
    pub fn changed(&self, principal: &Principal) {
        lock(&self.slashes).remove(principal);
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
