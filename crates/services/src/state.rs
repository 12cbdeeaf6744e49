//! Values that outlive a session: `user:` and `app:` names, facts of no session in logs of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::state::{encoded_state_size, filter_state_by_scope};
use gander_domain::{MAX_STATE_BYTES, Principal, SessionView, State, StateScope};
use gander_store::{FactEntry, FactLog, FactState, FoldedFacts, Store, StoreError};
use serde::{Deserialize, Serialize};

/// So many folds are remembered.
const MAX_CACHED_SCOPES: usize = 1_024;

/// All of them together: one may hold as much as a session's values.
const MAX_CACHED_BYTES: usize = 8 << 20;

/// Who shares values: the sessions of one user with one agent, and all users of that agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateScopeKey {
    pub principal: Principal,
    /// With which agent.
    pub app: String,
    /// As which of the principal's users.
    pub user: String,
}

/// Why values are not kept.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Too much.
    #[error("values kept under `user:` or `app:` would take more than {MAX_STATE_BYTES} bytes: {0}")]
    Full(usize),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Values that outlive a session, folded from their logs. Cheap to clone.
#[derive(Clone)]
pub struct SharedState {
    store: Arc<dyn Store>,
    known: Arc<Mutex<HashMap<String, CachedState>>>,
}

/// The values of one scope.
#[derive(Clone, Default)]
struct ScopeValues(State);

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StateFact {
    Set { delta: State },
}

#[derive(Clone)]
struct CachedState {
    folded: FoldedFacts<ScopeValues>,
    /// The size of its values.
    bytes: usize,
}

impl FactState for ScopeValues {
    type Fact = StateFact;

    fn apply(&mut self, fact: StateFact, _: FactEntry) {
        let StateFact::Set { delta } = fact;
        self.0.extend(delta);
    }

    fn facts(&self) -> Vec<StateFact> {
        vec![StateFact::Set { delta: self.0.clone() }]
    }

    fn approximate_fact_count(&self) -> usize {
        self.0.len()
    }
}

impl StateScopeKey {
    /// The key of a session: where the ADK door sees it.
    pub async fn for_session(store: &dyn Store, view: &SessionView, user: &str) -> Result<Self, StoreError> {
        let names = store.aliases(view.session).await?;
        let named = names.iter().find(|alias| alias.door == "adk").and_then(|alias| alias.namespace.split_once('/'));
        let (app, user) = named.unwrap_or((&view.settings.agent, user));
        Ok(Self { principal: view.owner.clone(), app: app.to_owned(), user: user.to_owned() })
    }

    fn scopes(&self) -> [(StateScope, String); 2] {
        let Self { principal, app, user } = self;
        [
            (StateScope::App, format!("state/app/{principal}/{app}")),
            (StateScope::User, format!("state/user/{principal}/{app}/{user}")),
        ]
    }
}

impl SharedState {
    /// Those in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Arc::default() }
    }

    /// What is kept for a key: the agent's names, then the user's.
    pub async fn get(&self, key: &StateScopeKey) -> Result<State, StateError> {
        let mut all = State::new();
        for (_, scope) in key.scopes() {
            all.extend(self.read_scope(&self.fact_log(&scope)).await?.state.0);
        }
        Ok(all)
    }

    /// Keeps what of a change belongs to a key. It would survive a power cut when this returns.
    pub async fn set(&self, key: &StateScopeKey, delta: &State) -> Result<(), StateError> {
        for (kind, scope) in key.scopes() {
            let own = filter_state_by_scope(delta, kind);
            if own.is_empty() {
                continue;
            }
            let log = self.fact_log(&scope);
            let mut folded = self.read_scope(&log).await?;
            let total = encoded_state_size(&folded.state.0) + encoded_state_size(&own);
            if total > MAX_STATE_BYTES {
                return Err(StateError::Full(total));
            }
            if log.compact_if_long(&mut folded).await? {
                self.cache_scope(&scope, folded);
            }
            log.append_fact(&StateFact::Set { delta: own }).await?;
        }
        Ok(())
    }

    fn fact_log(&self, scope: &str) -> FactLog<ScopeValues> {
        FactLog::new(Arc::clone(&self.store), scope)
    }

    /// Only what was added since the last look is read.
    async fn read_scope(&self, log: &FactLog<ScopeValues>) -> Result<FoldedFacts<ScopeValues>, StoreError> {
        let known = self.lock_cache().get(log.scope()).map(|cached| cached.folded.clone());
        let before = known.as_ref().map(FoldedFacts::last_seq);
        let folded = match known {
            Some(mut folded) => {
                log.read_on(&mut folded).await?;
                folded
            }
            None => log.read_folded().await?,
        };
        if Some(folded.last_seq()) != before {
            self.cache_scope(log.scope(), folded.clone());
        }
        Ok(folded)
    }

    fn cache_scope(&self, scope: &str, folded: FoldedFacts<ScopeValues>) {
        let cached = CachedState { bytes: encoded_state_size(&folded.state.0), folded };
        let mut known = self.lock_cache();
        let bytes: usize = known.values().map(|cached| cached.bytes).sum();
        if known.len() >= MAX_CACHED_SCOPES || bytes + cached.bytes > MAX_CACHED_BYTES {
            known.clear();
        }
        known.insert(scope.to_owned(), cached);
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_cache(&self) -> MutexGuard<'_, HashMap<String, CachedState>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
