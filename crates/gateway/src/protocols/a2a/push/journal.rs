//! What is known of push notifications, as facts in a log of their own, which is kept short.

use std::collections::BTreeMap;
use std::sync::Arc;

use gander_domain::{RunId, Seq};
use gander_services::server_vault::ServerVault;
use gander_store::{Durability, FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{Receiver, credentials};

/// The log's name; one that an earlier version shortened has a number behind it.
const JOURNAL_SCOPE: &str = "a2a/push";

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(super) enum PushFact {
    #[serde(rename = "wanted")]
    ReceiverSet {
        #[serde(rename = "wish")]
        receiver: Box<Receiver>,
    },
    #[serde(rename = "told")]
    Delivered {
        run: RunId,
        id: String,
        seq: Seq,
    },
    #[serde(rename = "over")]
    Finished {
        run: RunId,
        id: String,
    },
    Removed {
        run: RunId,
        id: String,
    },
}

/// Whether a receiver was told everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryState {
    Complete,
    Pending,
}

/// The log of these facts.
pub(super) struct PushJournal {
    log: FactLog<Receivers>,
    vault: ServerVault,
}

/// The receivers of each run, by the name of their configuration.
#[derive(Default)]
struct Receivers {
    known: BTreeMap<(RunId, String), (Receiver, DeliveryState)>,
    /// An earlier version wrote credentials into the log.
    has_secrets: bool,
}

impl FactState for Receivers {
    type Fact = PushFact;

    fn apply(&mut self, fact: PushFact, _: FactEntry) {
        match fact {
            PushFact::ReceiverSet { receiver } => {
                self.has_secrets |= credentials::has_push_credentials(&receiver.config);
                let key = (receiver.run, receiver.config.id.clone());
                self.known.insert(key, (*receiver, DeliveryState::Pending));
            }
            PushFact::Delivered { run, id, seq } => {
                if let Some((receiver, _)) = self.known.get_mut(&(run, id)) {
                    receiver.delivered_to = seq;
                }
            }
            PushFact::Finished { run, id } => {
                if let Some((_, state)) = self.known.get_mut(&(run, id)) {
                    *state = DeliveryState::Complete;
                }
            }
            PushFact::Removed { run, id } => drop(self.known.remove(&(run, id))),
        }
    }

    fn facts(&self) -> Vec<PushFact> {
        self.known.values().flat_map(receiver_journal_facts).collect()
    }

    fn approximate_fact_count(&self) -> usize {
        self.known.len() * 2
    }
}

impl PushJournal {
    /// Reads everything. Of several logs the last one counts: an earlier version that was cut off left the others.
    pub(super) async fn load(
        store: Arc<dyn Store>,
        vault: ServerVault,
    ) -> Result<(Self, Vec<(Receiver, DeliveryState)>), StoreError> {
        let mut scopes: Vec<String> = Vec::new();
        while let Some((name, _)) = store.scopes(JOURNAL_SCOPE, scopes.last().map(String::as_str), 1).await?.pop() {
            scopes.push(name);
        }
        let scope = scopes.pop().unwrap_or_else(|| JOURNAL_SCOPE.to_owned());
        for old in scopes {
            store.delete_scope(&old).await?;
        }
        let journal = Self { log: FactLog::new(store, scope), vault };
        journal.move_secrets_to_vault().await?;
        let receivers = journal.read_receivers().await?;
        Ok((journal, receivers))
    }

    /// The log's name.
    pub(super) fn scope(&self) -> &str {
        self.log.scope()
    }

    /// Everybody who is noted, with the secrets that this vault has.
    pub(super) async fn read_receivers(&self) -> Result<Vec<(Receiver, DeliveryState)>, StoreError> {
        let Receivers { known, .. } = self.log.fold_all().await?;
        // Secrets are written before the receiver that needs them.
        self.vault.refresh().await?;
        Ok(known.into_values().map(|(receiver, state)| (self.with_secrets(receiver), state)).collect())
    }

    /// Earlier versions wrote credentials into the log. They go into the vault, and the log is compacted without them:
    /// what stood there before is overwritten.
    async fn move_secrets_to_vault(&self) -> Result<(), StoreError> {
        let mut folded = self.log.read_folded().await?;
        if !folded.state.has_secrets {
            return Ok(());
        }
        for (receiver, _) in folded.state.known.values() {
            if credentials::has_push_credentials(&receiver.config) {
                self.store_secrets(receiver.clone()).await?;
            }
        }
        if !self.log.compact_now(&mut folded).await? {
            tracing::warn!("credentials of push notifications stay in a log that another version wrote");
        }
        Ok(())
    }

    fn with_secrets(&self, receiver: Receiver) -> Receiver {
        Receiver {
            config: credentials::with_push_credentials(&self.vault, receiver.run, receiver.config.clone()),
            ..receiver
        }
    }

    async fn store_secrets(&self, receiver: Receiver) -> Result<(), StoreError> {
        let kept = credentials::store_push_credentials(&self.vault, receiver.run, &receiver.config).await;
        kept.map_err(|error| StoreError::Invalid(error.to_string()))
    }

    async fn delete_secrets(&self, run: RunId, id: &str) {
        if let Err(error) = credentials::delete_push_credentials(&self.vault, run, id).await {
            tracing::warn!(%error, "credentials of a push notification stay in the vault");
        }
    }

    /// True if every node has the secrets of every receiver.
    pub(super) fn shares_secrets(&self) -> bool {
        self.vault.is_shared()
    }

    pub(super) async fn append(&self, fact: &PushFact, durability: Durability) -> Result<(), StoreError> {
        let stored = match fact {
            // The vault first: a receiver without its credentials would refuse everything.
            PushFact::ReceiverSet { receiver } => {
                self.store_secrets(Receiver::clone(receiver)).await?;
                &PushFact::ReceiverSet { receiver: Box::new(journalled_receiver(receiver)) }
            }
            PushFact::Delivered { .. } | PushFact::Finished { .. } | PushFact::Removed { .. } => fact,
        };
        self.log.append_with(stored, durability).await?;
        if let PushFact::Finished { run, id } | PushFact::Removed { run, id } = fact {
            self.delete_secrets(*run, id).await;
        }
        Ok(())
    }
}

/// What a compacted log holds for a receiver.
fn receiver_journal_facts((receiver, state): &(Receiver, DeliveryState)) -> impl Iterator<Item = PushFact> {
    let over = || PushFact::Finished { run: receiver.run, id: receiver.config.id.clone() };
    let over = (*state == DeliveryState::Complete).then(over);
    [PushFact::ReceiverSet { receiver: Box::new(journalled_receiver(receiver)) }].into_iter().chain(over)
}

fn journalled_receiver(receiver: &Receiver) -> Receiver {
    let guarded = receiver.guarded || credentials::has_push_credentials(&receiver.config);
    Receiver { config: credentials::without_push_credentials(&receiver.config), guarded, ..receiver.clone() }
}

#[cfg(test)]
mod tests {
    use gander_domain::{Principal, SessionId};
    use gander_wire::a2a::{A2aDialect, Authentication, PushConfig};
    use uuid::Uuid;

    use super::*;
    use gander_services::vault::Vault;
    use gander_store::{MemoryStore, ScopeAppend, clock, longest_fact_log};

    fn receiver(n: u128) -> Receiver {
        let run = RunId::new(Uuid::from_u128(n));
        let config = PushConfig {
            id: "c".to_owned(),
            task_id: run.to_string(),
            url: "https://example.com".to_owned(),
            token: None,
            authentication: None,
        };
        Receiver {
            principal: Principal::owner(),
            session: SessionId::new(Uuid::from_u128(1)),
            run,
            context: "x".to_owned(),
            artifacts_url: None,
            first: Seq(1),
            delivered_to: Seq(1),
            dialect: A2aDialect::V1,
            config,
            guarded: false,
        }
    }

    #[tokio::test]
    async fn the_log_stays_short_and_says_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        // An earlier version began a log anew and was cut off before the old one was gone.
        let (one, two) = (receiver(2), receiver(3));
        let folder = tempfile::tempdir().expect("a folder");
        let vault = ServerVault::of_node(Vault::open(folder.path().join("secrets.json")).expect("a vault"));
        let journal =
            |scope: String| PushJournal { log: FactLog::new(Arc::clone(&store), scope), vault: vault.clone() };
        let old = journal(JOURNAL_SCOPE.to_owned());
        old.append(&PushFact::ReceiverSet { receiver: Box::new(receiver(4)) }, Durability::Relaxed)
            .await
            .expect("written");
        let new = journal(format!("{JOURNAL_SCOPE}.{:020}", 1));
        new.append(&PushFact::ReceiverSet { receiver: Box::new(one.clone()) }, Durability::Relaxed)
            .await
            .expect("written");
        let (facts, found) = PushJournal::load(Arc::clone(&store), vault.clone()).await.expect("loaded");
        assert_eq!(found, [(one.clone(), DeliveryState::Pending)]);
        facts
            .append(&PushFact::ReceiverSet { receiver: Box::new(two.clone()) }, Durability::Relaxed)
            .await
            .expect("written");
        facts
            .append(&PushFact::Finished { run: two.run, id: "c".to_owned() }, Durability::Relaxed)
            .await
            .expect("written");
        for seq in 2..=10_000 {
            let delivered_to = PushFact::Delivered { run: one.run, id: "c".to_owned(), seq: Seq(seq) };
            facts.append(&delivered_to, Durability::Relaxed).await.expect("written");
        }
        let length = store.read_scope(facts.log.scope(), Seq::ZERO, 20_000).await.expect("read").len();
        assert!(length <= longest_fact_log(4) + 1, "{length}");
        let (_, found) = PushJournal::load(Arc::clone(&store), vault.clone()).await.expect("loaded");
        assert_eq!(
            found,
            [(Receiver { delivered_to: Seq(10_000), ..one }, DeliveryState::Pending), (two, DeliveryState::Complete)]
        );
        assert_eq!(store.scopes(JOURNAL_SCOPE, None, 10).await.expect("listed").len(), 1);
    }

    #[tokio::test]
    async fn credentials_of_an_earlier_version_move_from_the_log_into_the_vault() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let folder = tempfile::tempdir().expect("a folder");
        let vault = ServerVault::of_node(Vault::open(folder.path().join("secrets.json")).expect("a vault"));
        let authentication = Authentication { scheme: "Bearer".to_owned(), credentials: Some("hush-one".to_owned()) };
        let (mut kept, mut replaced) = (receiver(2), receiver(3));
        kept.config.authentication = Some(authentication);
        kept.config.token = Some("hush-two".to_owned());
        replaced.config.token = Some("hush-three".to_owned());
        let facts = [&kept, &replaced, &receiver(3)]
            .map(|receiver| serde_json::to_value(PushFact::ReceiverSet { receiver: Box::new(receiver.clone()) }));
        let facts = facts.into_iter().collect::<Result<_, _>>().expect("JSON");
        let append = ScopeAppend { scope: JOURNAL_SCOPE.to_owned(), at: clock::current_time(), facts, after: None };
        store.append_scope(append, Durability::Relaxed).await.expect("written");
        let (facts, found) = PushJournal::load(Arc::clone(&store), vault.clone()).await.expect("loaded");
        let kept = Receiver { guarded: true, ..kept };
        assert_eq!(found, [(kept.clone(), DeliveryState::Pending), (receiver(3), DeliveryState::Pending)]);
        let logged = store.read_scope(JOURNAL_SCOPE, Seq::ZERO, 100).await.expect("read");
        assert!(!format!("{logged:?}").contains("hush"), "{logged:?}");
        let (_, again) = PushJournal::load(Arc::clone(&store), vault).await.expect("loaded");
        assert_eq!(again, found);
        facts
            .append(&PushFact::Finished { run: kept.run, id: "c".to_owned() }, Durability::Relaxed)
            .await
            .expect("written");
        let left = std::fs::read_to_string(folder.path().join("secrets.json")).expect("read");
        assert_eq!(left, "{}", "whoever was told everything needs no credentials");
    }
}
