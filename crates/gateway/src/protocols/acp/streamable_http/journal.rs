//! What is kept of a connection: who it is, and the messages that are in no session's log. Survives a restart.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, Seq, SessionId, Timestamp};
use gander_store::{Durability, ScopeAppend, ScopeEntry, Store, StoreError, clock};
use gander_wire::acp::{AcpOptions, Dialect};
use gander_wire::jsonrpc::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::envelope::answered_request_in_envelope;
use super::holder::delete_holder;

/// How long a connection is known after its last sign of life.
pub(super) const CONNECTION_TTL: Duration = Duration::from_secs(60 * 60);

/// A sign of life is written when the last one is older than this.
const USE_RECORD_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// Names of connections that one read gives.
const PAGE_SIZE: u32 = 1_000;

/// Facts that one read gives at first and at most. Some hold whole sessions: only a page of small ones is followed by a
/// larger one.
const MIN_FACTS: u32 = 4;
const MAX_FACTS: u32 = 1_024;

/// A page that holds more than this is a large one.
const SMALL_PAGE_BYTES: usize = 64 * 1024;

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

/// Where a message that no log holds is kept. It is read when its reader has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptMessage {
    pub(super) n: u64,
    pub(super) after: (u64, u32),
    /// Its place in the journal.
    pub(super) at: Seq,
    pub(super) bytes: usize,
}

/// Goes through a journal, a page at a time.
struct JournalReader<'a> {
    journal: &'a ConnectionJournal,
    after: Seq,
    limit: u32,
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
        Self { store, scope: journal_scope_name(id), last: 0, written: clock::current_time(), told, loads }
    }

    /// A connection that began before. `None` if there was none, or too long ago.
    pub(super) async fn find_connection(
        store: Arc<dyn Store>,
        id: Uuid,
    ) -> Result<Option<(Self, ConnectionStart)>, StoreError> {
        let mut record = Self::new(store, id);
        let mut began = None;
        record.written = Timestamp::from_micros(0);
        let mut place = (Seq::ZERO, MIN_FACTS);
        loop {
            let mut reader = JournalReader { journal: &record, after: place.0, limit: place.1 };
            let page = reader.next_page().await?;
            place = (reader.after, reader.limit);
            let Some((last, _)) = page.last() else { break };
            record.written = last.at;
            page.into_iter().for_each(|(_, fact)| record.restore_fact(&mut began, fact));
        }
        if record.age() > CONNECTION_TTL {
            record.delete().await?;
            return Ok(None);
        }
        Ok(began.map(|began| (record, began)))
    }

    fn restore_fact(&mut self, began: &mut Option<ConnectionStart>, fact: ConnectionFact) {
        match (fact, began) {
            (ConnectionFact::Began { principal, options, initialize }, began) => {
                *began = Some(ConnectionStart { principal, options, initialize });
            }
            (ConnectionFact::Speaks { dialect }, Some(began)) => began.options.dialect = Some(dialect),
            (fact, _) => self.apply_fact(&fact),
        }
    }

    /// Adds facts; they survive the death of the process when this returns. Gives the place of the last one.
    pub(super) async fn append(&mut self, facts: &[ConnectionFact]) -> Result<Seq, StoreError> {
        facts.iter().for_each(|fact| self.apply_fact(fact));
        let facts = facts.iter().filter_map(|fact| serde_json::to_value(fact).ok()).collect();
        self.written = clock::current_time();
        let append = ScopeAppend { scope: self.scope.clone(), at: self.written, facts, after: None };
        self.store.append_scope(append, Durability::Relaxed).await
    }

    /// Notes that the connection is in use, now and then.
    pub(super) async fn record_use(&mut self) -> Result<(), StoreError> {
        if self.age() > USE_RECORD_INTERVAL { self.append(&[ConnectionFact::Seen]).await.map(drop) } else { Ok(()) }
    }

    /// Where the messages of one stream after a number are kept.
    pub(super) async fn kept_messages(
        &self,
        of: Option<SessionId>,
        beyond: u64,
    ) -> Result<VecDeque<KeptMessage>, StoreError> {
        let (mut kept, mut reader) = (VecDeque::new(), JournalReader::new(self));
        loop {
            let page = reader.next_page().await?;
            if page.is_empty() {
                return Ok(kept);
            }
            for (entry, fact) in page {
                if let ConnectionFact::Said { n, stream, after, message, .. } = fact
                    && stream == of
                    && n > beyond
                {
                    kept.push_back(KeptMessage { n, after, at: entry.seq, bytes: message.len() });
                }
            }
        }
    }

    /// A message that is kept.
    pub(super) async fn read_message(&self, kept: &KeptMessage) -> Result<String, StoreError> {
        let before = Seq(kept.at.0.saturating_sub(1));
        let entry = self.store.read_scope(&self.scope, before, 1).await?.into_iter().next();
        match entry.and_then(|entry| serde_json::from_value(entry.fact).ok()) {
            Some(ConnectionFact::Said { n, message, .. }) if n == kept.n => Ok(message),
            Some(
                ConnectionFact::Said { .. }
                | ConnectionFact::Began { .. }
                | ConnectionFact::Speaks { .. }
                | ConnectionFact::Loads { .. }
                | ConnectionFact::Seen,
            )
            | None => Err(StoreError::Corrupt(format!("no message of a connection at its place: {}", kept.at))),
        }
    }

    /// Nobody knows the connection any more.
    pub(super) async fn delete(&self) -> Result<(), StoreError> {
        delete_journal(&*self.store, &self.scope).await
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
        let answered = answered_request_in_envelope(message.as_bytes());
        open.filter(|load| load.request == answered).for_each(|load| load.request = None);
    }

    fn age(&self) -> Duration {
        journal_age(self.written)
    }
}

impl<'a> JournalReader<'a> {
    fn new(journal: &'a ConnectionJournal) -> Self {
        Self { journal, after: Seq::ZERO, limit: MIN_FACTS }
    }

    /// The next facts; none at the end.
    async fn next_page(&mut self) -> Result<Vec<(FactPlace, ConnectionFact)>, StoreError> {
        loop {
            let entries = self.journal.store.read_scope(&self.journal.scope, self.after, self.limit).await?;
            let Some(last) = entries.last() else { return Ok(Vec::new()) };
            self.after = last.seq;
            let page: Vec<_> = entries.into_iter().filter_map(read_journal_fact).collect();
            let bytes: usize = page.iter().map(|(_, fact)| fact.message_len()).sum();
            self.limit = if bytes < SMALL_PAGE_BYTES { (self.limit * 2).min(MAX_FACTS) } else { MIN_FACTS };
            if !page.is_empty() {
                return Ok(page);
            }
        }
    }
}

/// Where a fact is, and since when.
struct FactPlace {
    seq: Seq,
    at: Timestamp,
}

fn read_journal_fact(entry: ScopeEntry) -> Option<(FactPlace, ConnectionFact)> {
    match serde_json::from_value(entry.fact) {
        Ok(fact) => Some((FactPlace { seq: entry.seq, at: entry.at }, fact)),
        Err(error) => {
            tracing::warn!(%error, "unknown fact about a connection");
            None
        }
    }
}

impl ConnectionFact {
    fn message_len(&self) -> usize {
        match self {
            Self::Said { message, .. } => message.len(),
            Self::Began { initialize, .. } => initialize.len(),
            Self::Speaks { .. } | Self::Loads { .. } | Self::Seen => 0,
        }
    }
}

/// Forgets connections whose last sign of life is too old.
pub(super) async fn delete_expired_journals(store: &dyn Store) -> Result<(), StoreError> {
    let mut after: Option<String> = None;
    loop {
        let page = store.scopes(SCOPE_PREFIX, after.as_deref(), PAGE_SIZE).await?;
        for (name, _) in page.iter().filter(|(_, seen)| journal_age(*seen) > CONNECTION_TTL) {
            delete_journal(store, name).await?;
        }
        match page.into_iter().next_back() {
            Some((last, _)) => after = Some(last),
            None => return Ok(()),
        }
    }
}

/// True if something is kept of a connection.
pub(super) async fn is_known_connection(store: &dyn Store, id: Uuid) -> Result<bool, StoreError> {
    Ok(!store.read_scope(&journal_scope_name(id), Seq::ZERO, 1).await?.is_empty())
}

async fn delete_journal(store: &dyn Store, scope: &str) -> Result<(), StoreError> {
    delete_holder(store, scope.trim_start_matches(SCOPE_PREFIX)).await?;
    store.delete_scope(scope).await
}

fn journal_age(since: Timestamp) -> Duration {
    let micros = clock::current_time().as_micros().saturating_sub(since.as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn journal_scope_name(id: Uuid) -> String {
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
        delete_expired_journals(&store).await.unwrap();
        let left: Vec<String> = store.scopes("", None, 9).await.unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["connection/new", "user/old"]);
    }
}
