//! MCP servers that were added or taken away while the server ran: facts of their own log, secrets apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::SessionId;
use gander_store::{Store, StoreError, append_fact, read_scope_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::{Entry, Secrets};
use crate::vault::Vault;

/// The log's key.
const SCOPE: &str = "extensions";

/// Where a server is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// In every session.
    Everywhere,
    /// In this one.
    Session(SessionId),
}

/// One that was added.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Added {
    pub entry: Entry,
    /// True if only public addresses may be dialled: somebody on the network named it.
    pub guarded: bool,
}

/// What was added and taken away, folded from its log.
pub struct Kept {
    store: Arc<dyn Store>,
    vault: Vault,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    added: BTreeMap<(Range, String), Added>,
    off: BTreeSet<(Range, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Fact {
    Added {
        range: Range,
        name: String,
        added: Added,
    },
    Removed {
        range: Range,
        name: String,
    },
    Restored {
        range: Range,
        name: String,
    },
    SwitchedOff {
        range: Range,
        name: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

impl Kept {
    /// What this store and vault hold.
    pub async fn load(store: Arc<dyn Store>, vault: Vault) -> Result<Self, StoreError> {
        let mut known = Known::default();
        for entry in read_scope_all(&*store, SCOPE).await? {
            known.apply(serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null)));
        }
        Ok(Self { store, vault, known: Mutex::new(known) })
    }

    /// Those of this range, by name, with their secrets.
    pub(super) fn of(&self, range: Range) -> Vec<(String, Added)> {
        let known = self.lock();
        let ours = known.added.iter().filter(|((of, _), _)| *of == range);
        let whole = |name: &str, added: &Added| {
            let secrets: Secrets = self.vault.get(&key(range, name)).unwrap_or_default();
            Added { entry: added.entry.clone().with_secrets(secrets), ..added.clone() }
        };
        ours.map(|((_, name), added)| (name.clone(), whole(name, added))).collect()
    }

    /// True if the server of this name is not used here, whoever else names it.
    pub(super) fn is_off(&self, range: Range, name: &str) -> bool {
        self.lock().off.contains(&(range, name.to_owned()))
    }

    /// Whether tools of our own were switched here; none if nobody said.
    pub(super) fn switched(&self, range: Range, name: &str) -> Option<bool> {
        let (known, place) = (self.lock(), (range, name.to_owned()));
        let on = known.added.get(&place).is_some_and(|added| added.entry.is_built_in());
        if known.off.contains(&place) { Some(false) } else { on.then_some(true) }
    }

    /// Adds one, or puts it in place of one of the same name.
    pub(super) async fn add(&self, range: Range, name: &str, added: Added) -> Result<(), StoreError> {
        let Added { entry, guarded } = added;
        let (entry, secrets) = entry.without_secrets();
        let written = match secrets.is_empty() {
            true => self.vault.remove(&key(range, name)),
            false => self.vault.put(&key(range, name), &secrets),
        };
        written.map_err(|error| StoreError::Invalid(format!("secrets could not be kept: {error}")))?;
        self.write(Fact::Added { range, name: name.to_owned(), added: Added { entry, guarded } }).await
    }

    /// Uses again what was switched off here.
    pub(super) async fn restore(&self, range: Range, name: &str) -> Result<(), StoreError> {
        self.write(Fact::Restored { range, name: name.to_owned() }).await
    }

    /// Uses one no longer, and keeps it.
    pub(super) async fn switch_off(&self, range: Range, name: &str) -> Result<(), StoreError> {
        self.write(Fact::SwitchedOff { range, name: name.to_owned() }).await
    }

    /// Takes one away, or switches off here what others name.
    pub(super) async fn remove(&self, range: Range, name: &str) -> Result<(), StoreError> {
        let forgotten = self.vault.remove(&key(range, name));
        forgotten.map_err(|error| StoreError::Invalid(format!("secrets could not be forgotten: {error}")))?;
        self.write(Fact::Removed { range, name: name.to_owned() }).await
    }

    async fn write(&self, fact: Fact) -> Result<(), StoreError> {
        append_fact(&*self.store, SCOPE, &fact).await?;
        self.lock().apply(fact);
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Added { range, name, added } => {
                self.off.remove(&(range, name.clone()));
                self.added.insert((range, name), added);
            }
            Fact::Removed { range, name } => {
                self.added.remove(&(range, name.clone()));
                self.off.insert((range, name));
            }
            Fact::Restored { range, name } => {
                self.off.remove(&(range, name));
            }
            Fact::SwitchedOff { range, name } => {
                self.off.insert((range, name));
            }
            Fact::Unknown(_) => {}
        }
    }
}

/// What secrets are kept under.
fn key(range: Range, name: &str) -> String {
    match range {
        Range::Everywhere => format!("extension/everywhere/{name}"),
        Range::Session(session) => format!("extension/{session}/{name}"),
    }
}
