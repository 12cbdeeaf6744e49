//! Recipes at work: which one a session follows, and which ones people call by a slash.

mod extensions;
mod fill;
mod slash;
mod sub_recipes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::recipe::{Flaw, Recipe, Values};
use gander_agent::recipe_run::SubRecipeSource;
use gander_domain::{Principal, Seq, SessionId};
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use gander_tools::FileAccess;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::user_store::{Collection, UserStore};

pub use extensions::{RecipeExtensions, resolve_recipe_extensions};
pub use fill::fill_recipe_in_workspace;
pub use slash::SlashRecipe;
pub(crate) use slash::{expand_slash_recipe, load_slash_recipes};

/// Logs of what sessions follow begin like this.
const SCOPE: &str = "recipe/";

/// Recipes filled in at once.
const MAX_FILLS: usize = 2;

/// Names of logs read in one go.
const SCOPE_PAGE_SIZE: u32 = 1_000;

/// Which recipes are in use.
pub struct Recipes {
    store: Arc<dyn Store>,
    /// How the files that they name are read.
    files: FileAccess,
    /// Sessions that follow one: most do not, and their runs need not look. Where other nodes write too, they do.
    following: Mutex<HashSet<SessionId>>,
    /// What people call by a slash, as far as somebody asked. Empty where other nodes write too.
    slashes: Mutex<HashMap<Principal, Arc<[SlashRecipe]>>>,
    /// Recipes that may be filled in at once.
    fills: Arc<Semaphore>,
}

/// A recipe that a session follows, filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecipe {
    /// The recipe.
    pub recipe: Recipe,
    /// Its folder, if it came from a file.
    pub folder: Option<String>,
}

/// What a session's log of recipes folds to: the last one counts.
#[derive(Default)]
struct LastRecipe(Option<SessionRecipe>);

impl FactState for LastRecipe {
    type Fact = SessionRecipe;

    fn apply(&mut self, fact: SessionRecipe, _: FactEntry) {
        self.0 = Some(fact);
    }

    fn facts(&self) -> Vec<SessionRecipe> {
        self.0.iter().cloned().collect()
    }
}

impl Recipes {
    /// Those in this store.
    pub async fn load(store: Arc<dyn Store>, files: FileAccess) -> Result<Self, StoreError> {
        let (mut following, mut after) = (HashSet::new(), None::<String>);
        loop {
            let page = store.scopes(SCOPE, after.as_deref(), SCOPE_PAGE_SIZE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            following.extend(page.iter().filter_map(|(scope, _)| scope.strip_prefix(SCOPE)?.parse::<SessionId>().ok()));
        }
        Ok(Self {
            store,
            files,
            following: Mutex::new(following),
            slashes: Mutex::default(),
            fills: Arc::new(Semaphore::new(MAX_FILLS)),
        })
    }

    /// Fills a recipe in for a session in this workspace. Templates and files take a while: beside the runtime, and only
    /// so many at once. Whoever leaves before its turn leaves no work behind.
    pub async fn fill_recipe(
        &self,
        recipe: &Recipe,
        values: &Values,
        workspace: &str,
        folder: Option<&str>,
    ) -> Result<Recipe, Flaw> {
        let broken = |error: &dyn std::fmt::Display| Flaw {
            field: "recipe".to_owned(),
            reason: format!("it was not filled in: {error}"),
        };
        let permit = Arc::clone(&self.fills).acquire_owned().await.map_err(|error| broken(&error))?;
        let (files, recipe, values) = (self.files.clone(), recipe.clone(), values.clone());
        let (workspace, folder) = (workspace.to_owned(), folder.map(str::to_owned));
        let filling = tokio::task::spawn_blocking(move || {
            let filled = fill_recipe_in_workspace(&files, &recipe, &values, &workspace, folder.as_deref());
            // The permit stays with the work, also when nobody waits for it any more.
            drop(permit);
            filled
        });
        filling.await.unwrap_or_else(|error| Err(broken(&error)))
    }

    /// The text of a file of the workspace, with nothing hidden in it and no secrets.
    pub fn read_workspace_file(&self, workspace: &str, path: &str) -> Result<String, String> {
        fill::read_workspace_file(&self.files, workspace, path)
    }

    /// The recipes that a recipe uses, and what is said of those that cannot be used.
    pub fn load_sub_recipes(&self, followed: &SessionRecipe) -> (Vec<SubRecipeSource>, Vec<String>) {
        sub_recipes::load_sub_recipes(&self.files, followed)
    }

    /// True if the session follows one.
    pub async fn has_recipe(&self, session: SessionId) -> Result<bool, StoreError> {
        if self.store.cluster().is_none() {
            return Ok(lock_recipes(&self.following).contains(&session));
        }
        Ok(!self.store.read_scope(self.session_log(session).scope(), Seq::ZERO, 1).await?.is_empty())
    }

    /// The recipe that a session follows.
    pub async fn recipe_of_session(&self, session: SessionId) -> Result<Option<SessionRecipe>, StoreError> {
        if !self.has_recipe(session).await? {
            return Ok(None);
        }
        let LastRecipe(followed) = self.session_log(session).read_folded().await?.state;
        Ok(followed)
    }

    /// From now on the session follows this one.
    pub async fn set_session_recipe(&self, session: SessionId, followed: &SessionRecipe) -> Result<(), StoreError> {
        self.session_log(session).append_fact(followed).await?;
        lock_recipes(&self.following).insert(session);
        Ok(())
    }

    /// Removes the recipe of a session that was deleted.
    pub async fn forget_session(&self, session: SessionId) {
        let followed = lock_recipes(&self.following).remove(&session) || self.store.cluster().is_some();
        if followed && let Err(error) = self.store.delete_scope(self.session_log(session).scope()).await {
            tracing::warn!(%error, %session, "the recipe of a deleted session is left behind");
        }
    }

    fn session_log(&self, session: SessionId) -> FactLog<LastRecipe> {
        FactLog::new(Arc::clone(&self.store), format!("{SCOPE}{session}"))
    }

    /// What somebody calls by a slash.
    pub async fn slash_recipes(&self, principal: &Principal) -> Result<Arc<[SlashRecipe]>, StoreError> {
        if let Some(known) = lock_recipes(&self.slashes).get(principal) {
            return Ok(Arc::clone(known));
        }
        let user_store = UserStore::open(&self.store, principal);
        let (recipes, names) =
            (user_store.collection(Collection::Recipe).await?, user_store.collection(Collection::Slash).await?);
        let slashes: Arc<[SlashRecipe]> = names
            .iter()
            .filter_map(|(id, name)| SlashRecipe::new(name.as_str()?, &recipes.get(id)?["recipe"]))
            .collect();
        if self.store.cluster().is_none() {
            lock_recipes(&self.slashes).insert(principal.clone(), Arc::clone(&slashes));
        }
        Ok(slashes)
    }

    /// Somebody saved or removed a recipe or its name.
    pub fn forget_slashes(&self, principal: &Principal) {
        lock_recipes(&self.slashes).remove(principal);
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_recipes<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
