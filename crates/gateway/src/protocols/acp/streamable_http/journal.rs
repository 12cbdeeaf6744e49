//! What is kept of a connection: who it is, and the messages that are in no session's log. Survives a restart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, Seq, SessionId, Timestamp};
use gander_store::{Durability, ScopeAppend, ScopeEntry, Store, StoreError, clock};
use gander_wire::acp::{AcpOptions, Dialect};
use gander_wire::jsonrpc::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::envelope::answered_request;

/// How long a connection is known after its last sign of life.
pub(super) const CONNECTION_TTL: Duration = Duration::from_secs(60 * 60);

/// A sign of life is written when the last one is older than this.
const USE_RECORD_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Facts that one read gives.
const PAGE_SIZE: u32 = 1_000;

/// How the names of connections begin among the scopes.
const SCOPE_PREFIX: &str = "connection/";

/// A fact about a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fact")]
pub(super) enum ConnectionFact {
    /// It began with this message.
    Began {
        principal: Principal,
        #[serde(default, rename = "manner")]
        options: AcpOptions,
        initialize: String,
    },
    /// It turned out to speak so.
    Speaks { dialect: Dialect },
    /// A message was said that no log holds, or not on the stream of its session.
    Said {
        n: u64,
        /// Whose stream; the connection's own if absent.
        #[serde(rename = "lane")]
        stream: Option<SessionId>,
        /// The entry that made it, if one did.
        entry: Option<(SessionId, Seq)>,
        /// The entry, and which of its messages, that was told before it.
        #[serde(default)]
        after: (u64, u32),
        message: String,
    },
    /// From here on this session's stream tells its history again, then answers this request.
    Loads {
        n: u64,
        session: SessionId,
        #[serde(default)]
        request: Option<Value>,
    },
    /// It is still in use.
    Seen,
}

/// A message that no log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptMessage {
    pub(super) n: u64,
    pub(super) after: (u64, u32),
    pub(super) message: String,
}

/// Who a connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionStart {
    pub(super) principal: Principal,
    pub(super) options: AcpOptions,
    pub(super) initialize: String,
}

/// What is kept of a connection.
pub(super) struct ConnectionJournal {
    store: Arc<dyn Store>,
    scope: String,
    /// The last message's number.
    pub(super) last: u64,
    written: Timestamp,
    /// Entries whose message went out on the connection's own stream.
    pub(super) told: HashSet<(SessionId, Seq)>,
    /// The last load of each session.
    pub(super) loads: HashMap<SessionId, PendingLoad>,
}

/// A history that was begun anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingLoad {
    /// Its number among the messages.
    pub(super) n: u64,
    /// The request that is not answered yet.
    pub(super) request: Option<RequestId>,
}

impl ConnectionJournal {
    /// A connection that begins now. Nothing is written yet.
    pub(super) fn new(store: Arc<dyn Store>, id: Uuid) -> Self {
        let (told, loads) = (HashSet::new(), HashMap::new());
        Self { store, scope: scope_name(id), last: 0, written: clock::current_time(), told, loads }
    }

    /// A connection that began before. `None` if there was none, or too long ago.
    pub(super) async fn find_connection(
        store: Arc<dyn Store>,
        id: Uuid,
    ) -> Result<Option<(Self, ConnectionStart)>, StoreError> {
        let mut record = Self::new(store, id);
        let mut began = None;
        record.written = Timestamp::from_micros(0);
        for entry in record.read_entries().await? {
            record.written = entry.at;
            match serde_json::from_value(entry.fact) {
                Ok(ConnectionFact::Began { principal, options, initialize }) => {
                    began = Some(ConnectionStart { principal, options, initialize });
                }
                Ok(ConnectionFact::Speaks { dialect }) => {
                    if let Some(began) = &mut began {
                        began.options.dialect = Some(dialect);
                    }
                }
                Ok(fact) => record.apply_fact(&fact),
                Err(error) => tracing::warn!(%error, "unknown fact about a connection"),
            }
        }
        if record.age() > CONNECTION_TTL {
            record.delete().await?;
            return Ok(None);
        }
        Ok(began.map(|began| (record, began)))
    }

    /// Adds facts; they survive the death of the process when this returns.
    pub(super) async fn append(&mut self, facts: &[ConnectionFact]) -> Result<(), StoreError> {
        facts.iter().for_each(|fact| self.apply_fact(fact));
        let facts = facts.iter().filter_map(|fact| serde_json::to_value(fact).ok()).collect();
        self.written = clock::current_time();
        let append = ScopeAppend { scope: self.scope.clone(), at: self.written, facts, after: None };
        self.store.append_scope(append, Durability::Relaxed).await.map(drop)
    }

    /// Notes that the connection is in use, now and then.
    pub(super) async fn record_use(&mut self) -> Result<(), StoreError> {
        if self.age() > USE_RECORD_INTERVAL { self.append(&[ConnectionFact::Seen]).await } else { Ok(()) }
    }

    /// The messages of one stream after a number.
    pub(super) async fn read_kept_messages(
        &self,
        of: Option<SessionId>,
        beyond: u64,
    ) -> Result<Vec<KeptMessage>, StoreError> {
        let facts = self.read_entries().await?.into_iter().filter_map(|entry| serde_json::from_value(entry.fact).ok());
        let said = facts.filter_map(|fact| match fact {
            ConnectionFact::Said { n, stream, message, after, .. } if stream == of && n > beyond => {
                Some(KeptMessage { n, after, message })
            }
            ConnectionFact::Said { .. }
            | ConnectionFact::Began { .. }
            | ConnectionFact::Speaks { .. }
            | ConnectionFact::Loads { .. }
            | ConnectionFact::Seen => None,
        });
        Ok(said.collect())
    }

    /// Nobody knows the connection any more.
    pub(super) async fn delete(&self) -> Result<(), StoreError> {
        self.store.delete_scope(&self.scope).await
    }

    fn apply_fact(&mut self, fact: &ConnectionFact) {
        match fact {
            ConnectionFact::Said { n, entry, message, .. } => {
                self.last = *n;
                self.told.extend(entry);
                self.end_answered_load(message);
            }
            ConnectionFact::Loads { n, session, request } => {
                self.last = *n;
                let request = request.clone().and_then(|request| serde_json::from_value(request).ok());
                self.loads.insert(*session, PendingLoad { n: *n, request });
            }
            ConnectionFact::Began { .. } | ConnectionFact::Speaks { .. } | ConnectionFact::Seen => {}
        }
    }

    /// A load whose answer was said is over.
    fn end_answered_load(&mut self, message: &str) {
        let open = self.loads.values_mut().filter(|load| load.request.is_some());
        let mut open = open.peekable();
        if open.peek().is_none() {
            return;
        }
        let answered = answered_request(message.as_bytes());
        open.filter(|load| load.request == answered).for_each(|load| load.request = None);
    }

    async fn read_entries(&self) -> Result<Vec<ScopeEntry>, StoreError> {
        let mut entries: Vec<ScopeEntry> = Vec::new();
        loop {
            let after = entries.last().map_or(Seq::ZERO, |entry| entry.seq);
            let page = self.store.read_scope(&self.scope, after, PAGE_SIZE).await?;
            let whole = page.len() < PAGE_SIZE as usize;
            entries.extend(page);
            if whole {
                return Ok(entries);
            }
        }
    }

    fn age(&self) -> Duration {
        age(self.written)
    }
}

/// Forgets connections whose last sign of life is too old.
pub(super) async fn delete_expired(store: &dyn Store) -> Result<(), StoreError> {
    let mut after: Option<String> = None;
    loop {
        let page = store.scopes(SCOPE_PREFIX, after.as_deref(), PAGE_SIZE).await?;
        for (name, _) in page.iter().filter(|(_, seen)| age(*seen) > CONNECTION_TTL) {
            store.delete_scope(name).await?;
        }
        match page.into_iter().next_back() {
            Some((last, _)) => after = Some(last),
            None => return Ok(()),
        }
    }
}

fn age(since: Timestamp) -> Duration {
    let micros = clock::current_time().as_micros().saturating_sub(since.as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn scope_name(id: Uuid) -> String {
    format!("{SCOPE_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use gander_store::MemoryStore;

    #[tokio::test]
    async fn connections_that_nobody_used_for_long_are_forgotten() {
        let store = MemoryStore::new();
        let at = |age: Duration| Timestamp::from_micros(clock::current_time().as_micros() - age.as_micros() as i64);
        let scopes = [
            ("connection/old", at(CONNECTION_TTL * 2)),
            ("connection/new", at(CONNECTION_TTL / 2)),
            ("user/old", at(CONNECTION_TTL * 9)),
        ];
        for (scope, at) in scopes {
            let append = ScopeAppend { scope: scope.to_owned(), at, facts: vec![1.into()], after: None };
            store.append_scope(append, Durability::Relaxed).await.unwrap();
        }
        delete_expired(&store).await.unwrap();
        let left: Vec<String> = store.scopes("", None, 9).await.unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["connection/new", "user/old"]);
    }
}
