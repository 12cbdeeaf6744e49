//! MCP servers that were added or taken away while the server ran: facts of their own log, secrets apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::SessionId;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::entry::{ExtensionEntry, Secrets};
use crate::server_vault::ServerVault;

/// The log's key.
pub(super) const SCOPE: &str = "extensions";

/// Where a server is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionScope {
    /// In every session.
    Everywhere,
    /// In this one.
    Session(SessionId),
}

/// One that was added.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct AddedExtension {
    pub entry: ExtensionEntry,
    /// True if only public addresses may be dialled: somebody on the network named it.
    pub guarded: bool,
}

/// What was added and taken away, folded from its log.
pub struct ExtensionRegistry {
    log: FactLog<RegistryState>,
    vault: ServerVault,
    known: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    added: BTreeMap<(ExtensionScope, String), AddedExtension>,
    off: BTreeSet<(ExtensionScope, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ExtensionFact {
    Added {
        range: ExtensionScope,
        name: String,
        added: AddedExtension,
    },
    Removed {
        range: ExtensionScope,
        name: String,
    },
    Restored {
        range: ExtensionScope,
        name: String,
    },
    SwitchedOff {
        range: ExtensionScope,
        name: String,
    },
    /// The session of this range was deleted.
    RangeForgotten {
        range: ExtensionScope,
    },
}

impl ExtensionRegistry {
    /// What this store and vault hold.
    pub async fn load(store: Arc<dyn Store>, vault: ServerVault) -> Result<Self, StoreError> {
        let log = FactLog::new(store, SCOPE);
        let known = log.fold_all().await?;
        Ok(Self { log, vault, known: Mutex::new(known) })
    }

    /// Reads the log again: another node wrote to it.
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        // Secrets are written before the server that needs them.
        self.vault.refresh().await?;
        let known = self.log.fold_all().await?;
        *self.lock_state() = known;
        Ok(())
    }

    /// Those of this range, by name, with their secrets.
    pub(super) fn list(&self, range: ExtensionScope) -> Vec<(String, AddedExtension)> {
        let known = self.lock_state();
        let ours = known.added.iter().filter(|((of, _), _)| *of == range);
        let whole = |name: &str, added: &AddedExtension| {
            let secrets: Secrets = self.vault.get(&extension_vault_key(range, name)).unwrap_or_default();
            AddedExtension { entry: added.entry.clone().with_secrets(secrets), ..added.clone() }
        };
        ours.map(|((_, name), added)| (name.clone(), whole(name, added))).collect()
    }

    /// True if the server of this name is not used here, whoever else names it.
    pub(super) fn is_off(&self, range: ExtensionScope, name: &str) -> bool {
        self.lock_state().off.contains(&(range, name.to_owned()))
    }

    /// Whether tools of our own were switched here; none if nobody said.
    pub(super) fn built_in_switch(&self, range: ExtensionScope, name: &str) -> Option<bool> {
        let (known, place) = (self.lock_state(), (range, name.to_owned()));
        let on = known.added.get(&place).is_some_and(|added| added.entry.is_built_in());
        if known.off.contains(&place) { Some(false) } else { on.then_some(true) }
    }

    /// Adds one, or puts it in place of one of the same name.
    pub(super) async fn add(&self, range: ExtensionScope, name: &str, added: AddedExtension) -> Result<(), StoreError> {
        let AddedExtension { entry, guarded } = added;
        let (entry, secrets) = entry.without_secrets();
        let written = match secrets.is_empty() {
            true => self.vault.remove(&extension_vault_key(range, name)).await,
            false => self.vault.put(&extension_vault_key(range, name), &secrets).await,
        };
        written.map_err(|error| StoreError::Invalid(format!("secrets could not be kept: {error}")))?;
        self.write_fact(ExtensionFact::Added { range, name: name.to_owned(), added: AddedExtension { entry, guarded } })
            .await
    }

    /// Uses again what was switched off here.
    pub(super) async fn restore(&self, range: ExtensionScope, name: &str) -> Result<(), StoreError> {
        self.write_fact(ExtensionFact::Restored { range, name: name.to_owned() }).await
    }

    /// Uses one no longer, and keeps it.
    pub(super) async fn switch_off(&self, range: ExtensionScope, name: &str) -> Result<(), StoreError> {
        self.write_fact(ExtensionFact::SwitchedOff { range, name: name.to_owned() }).await
    }

    /// Takes one away, or switches off here what others name.
    pub(super) async fn remove(&self, range: ExtensionScope, name: &str) -> Result<(), StoreError> {
        let forgotten = self.vault.remove(&extension_vault_key(range, name)).await;
        forgotten.map_err(|error| StoreError::Invalid(format!("secrets could not be forgotten: {error}")))?;
        self.write_fact(ExtensionFact::Removed { range, name: name.to_owned() }).await
    }

    /// Forgets everything of a range that is gone, also on the disk.
    pub(super) async fn forget_range(&self, range: ExtensionScope) -> Result<(), StoreError> {
        let named: Vec<String> = {
            let known = self.lock_state();
            let added = known.added.keys().filter(|(of, _)| *of == range);
            added.chain(known.off.iter().filter(|(of, _)| *of == range)).map(|(_, name)| name.clone()).collect()
        };
        if named.is_empty() {
            return Ok(());
        }
        for name in &named {
            let forgotten = self.vault.remove(&extension_vault_key(range, name)).await;
            forgotten.map_err(|error| StoreError::Invalid(format!("secrets could not be forgotten: {error}")))?;
        }
        self.write_fact(ExtensionFact::RangeForgotten { range }).await?;
        let mut folded = self.log.read_folded().await?;
        self.log.compact_now(&mut folded).await.map(drop)
    }

    async fn write_fact(&self, fact: ExtensionFact) -> Result<(), StoreError> {
        let written = self.log.append_fact(&fact).await?;
        self.lock_state().apply(fact, written);
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_state(&self) -> MutexGuard<'_, RegistryState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FactState for RegistryState {
    type Fact = ExtensionFact;

    fn apply(&mut self, fact: ExtensionFact, _written: FactEntry) {
        match fact {
            ExtensionFact::Added { range, name, added } => {
                self.off.remove(&(range, name.clone()));
                self.added.insert((range, name), added);
            }
            ExtensionFact::Removed { range, name } => {
                self.added.remove(&(range, name.clone()));
                self.off.insert((range, name));
            }
            ExtensionFact::Restored { range, name } => {
                self.off.remove(&(range, name));
            }
            ExtensionFact::SwitchedOff { range, name } => {
                self.off.insert((range, name));
            }
            ExtensionFact::RangeForgotten { range } => {
                self.added.retain(|(of, _), _| *of != range);
                self.off.retain(|(of, _)| *of != range);
            }
        }
    }

    /// What is off follows what was added: adding one switches it on.
    fn facts(&self) -> Vec<ExtensionFact> {
        let added = self.added.iter().map(|((range, name), added)| ExtensionFact::Added {
            range: *range,
            name: name.clone(),
            added: added.clone(),
        });
        let off = self.off.iter().map(|(range, name)| ExtensionFact::SwitchedOff { range: *range, name: name.clone() });
        added.chain(off).collect()
    }
}

/// What secrets are kept under.
fn extension_vault_key(range: ExtensionScope, name: &str) -> String {
    match range {
        ExtensionScope::Everywhere => format!("extension/everywhere/{name}"),
        ExtensionScope::Session(session) => format!("extension/{session}/{name}"),
    }
}
