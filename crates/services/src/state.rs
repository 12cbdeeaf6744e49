//! Values that outlive a session: `user:` and `app:` names, facts of no session in logs of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::state::{encoded_size, filter_by_scope};
use gander_domain::{MAX_STATE_BYTES, Principal, SessionView, State, StateScope};
use gander_store::{Durability, Place, Saying, ScopeAppend, Store, StoreError, clock, read_on, shorten};
use serde_json::{Value, json};

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

/// Values of rooms, folded from their logs. Cheap to clone.
#[derive(Clone)]
pub struct SharedState {
    store: Arc<dyn Store>,
    known: Arc<Mutex<HashMap<String, Folded>>>,
}

/// What a log says up to a place.
#[derive(Clone, Default)]
struct Folded {
    place: Place,
    state: State,
    /// It holds facts that only another version knows.
    strange: bool,
    /// The size of its values.
    bytes: usize,
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
            all.extend(self.fold(&scope).await?.state);
        }
        Ok(all)
    }

    /// Keeps what of a change belongs to a key. It would survive a power cut when this returns.
    pub async fn set(&self, key: &StateScopeKey, delta: &State) -> Result<(), StateError> {
        for (kind, scope) in key.scopes() {
            let own = filter_by_scope(delta, kind);
            if own.is_empty() {
                continue;
            }
            let folded = self.fold(&scope).await?;
            let total = encoded_size(&folded.state) + encoded_size(&own);
            if total > MAX_STATE_BYTES {
                return Err(StateError::Full(total));
            }
            self.tidy(&scope, folded).await?;
            let facts = vec![json!({ "kind": "set", "delta": own })];
            let append = ScopeAppend { scope, at: clock::now(), facts, after: None };
            self.store.append_scope(append, Durability::Barrier).await?;
        }
        Ok(())
    }

    /// Only what was added since the last look is read.
    async fn fold(&self, scope: &str) -> Result<Folded, StoreError> {
        let mut folded = self.lock().get(scope).cloned().unwrap_or_default();
        let before = folded.place;
        let Folded { place, state, strange, .. } = &mut folded;
        *place = read_on(&*self.store, scope, *place, |saying| match saying {
            Saying::Anew => state.clear(),
            Saying::Fact(mut fact) => match fact.get_mut("delta").map(Value::take) {
                Some(Value::Object(delta)) => state.extend(delta),
                Some(_) | None => *strange = true,
            },
        })
        .await?;
        if folded.place != before {
            folded.bytes = encoded_size(&folded.state);
            self.cache(scope, folded.clone());
        }
        Ok(folded)
    }

    /// A log that is long for what it says says it anew.
    async fn tidy(&self, scope: &str, folded: Folded) -> Result<(), StoreError> {
        if folded.strange || !folded.place.is_long(folded.state.len()) {
            return Ok(());
        }
        let facts = vec![json!({ "kind": "set", "delta": folded.state })];
        let place = shorten(&*self.store, scope, folded.place, facts).await?;
        self.cache(scope, Folded { place, ..folded });
        Ok(())
    }

    fn cache(&self, scope: &str, folded: Folded) {
        let mut known = self.lock();
        let bytes: usize = known.values().map(|folded| folded.bytes).sum();
        if known.len() >= MAX_CACHED_SCOPES || bytes + folded.bytes > MAX_CACHED_BYTES {
            known.clear();
        }
        known.insert(scope.to_owned(), folded);
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Folded>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
