//! Tokens and browsers that count at every node: one log in the database that the nodes share.
//!
//! It holds hashes alone. Who reads the database learns no token, ticket or cookie from it; who writes to it can make one
//! count, as it can change any session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gander_domain::{Seq, Timestamp};
use gander_store::{FactEntry, FactLog, FactState, FoldedFacts, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::credential_hashes::{BrowserCookie, MAX_COOKIES, MAX_TICKETS, TokenGrant, TokenId, remove_oldest_access};

/// The log's key.
const SCOPE: &str = "credentials";

/// Another node may write at the same moment, but not again and again.
const MAX_TRIES: u32 = 32;

/// What counts at every node. Cheap to clone.
#[derive(Clone)]
pub struct SharedCredentials {
    inner: Arc<CredentialLog>,
}

struct CredentialLog {
    log: FactLog<CredentialState>,
    known: Mutex<Arc<FoldedFacts<CredentialState>>>,
    /// One looks at the database for a credential that is not known here, others wait for what it finds.
    lookup: Semaphore,
    last_lookup: Mutex<Option<Instant>>,
}

/// What the log says.
#[derive(Clone, Debug, Default)]
pub(crate) struct CredentialState {
    tokens: BTreeMap<String, TokenGrant>,
    /// Each node's own token of its owner, and the label of the node.
    owners: BTreeMap<TokenId, String>,
    tickets: Vec<SharedTicket>,
    cookies: Vec<BrowserCookie>,
    /// How often every browser was sent away.
    sign_outs: u64,
}

/// A ticket that nobody used yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedTicket {
    /// SHA-256 of the ticket, in hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) token: TokenId,
    /// Seconds since 1970.
    pub(crate) expires: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CredentialFact {
    TokenAdded { grant: TokenGrant },
    TokenRevoked { name: String },
    OwnerTokenKnown { token: TokenId, label: String },
    OwnerTokenRevoked { token: TokenId },
    TicketIssued { ticket: SharedTicket },
    TicketTaken { sha256: String },
    CookieIssued { cookie: BrowserCookie },
    CookieRevoked { sha256: String },
    BrowsersSignedOut { times: u64 },
}

impl SharedCredentials {
    /// What this store holds.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let log = FactLog::new(store, SCOPE);
        let known = Mutex::new(Arc::new(log.read_folded().await?));
        let inner = CredentialLog { log, known, lookup: Semaphore::new(1), last_lookup: Mutex::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Reads what other nodes wrote since.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let mut folded = (*self.current()).clone();
        self.inner.log.read_on(&mut folded).await?;
        self.keep_newer(folded);
        Ok(())
    }

    /// The same for a credential that is not known here: another node may have made it a moment ago. Any number of those who
    /// ask at once are one query.
    pub async fn refresh_for_unknown(&self) {
        let asked = Instant::now();
        let Ok(_turn) = self.inner.lookup.acquire().await else { return };
        let began = Instant::now();
        let last = self.inner.last_lookup.lock().unwrap_or_else(PoisonError::into_inner).replace(began);
        if last.is_some_and(|last| last > asked) {
            return;
        }
        if let Err(error) = self.refresh().await {
            tracing::debug!(%error, "credentials that other nodes made were not read");
        }
    }

    /// The tokens that were given to others.
    pub fn list_tokens(&self) -> Vec<TokenGrant> {
        self.current().state.tokens.values().cloned().collect()
    }

    /// The nodes' own tokens of their owner, with the label of each.
    pub fn owner_tokens(&self) -> Vec<(TokenId, String)> {
        self.current().state.owners.iter().map(|(token, label)| (token.clone(), label.clone())).collect()
    }

    /// Notes the token that the owner has at this node.
    pub async fn register_owner_token(&self, token: TokenId, label: &str) -> Result<(), StoreError> {
        let fact = CredentialFact::OwnerTokenKnown { token: token.clone(), label: label.to_owned() };
        let is_new = |state: &CredentialState| state.owners.get(&token).is_none_or(|known| known != label);
        self.write_if(|state| is_new(state).then(|| fact.clone())).await.map(drop)
    }

    /// Adds a token; false if there is one of this name.
    pub(crate) async fn add_token(&self, grant: &TokenGrant) -> Result<bool, StoreError> {
        let fact = CredentialFact::TokenAdded { grant: grant.clone() };
        self.write_if(|state| (!state.tokens.contains_key(&grant.name)).then(|| fact.clone())).await
    }

    /// Takes a token back; false if there is none of this name.
    pub(crate) async fn revoke_token(&self, name: &str) -> Result<bool, StoreError> {
        let fact = CredentialFact::TokenRevoked { name: name.to_owned() };
        self.write_if(|state| state.tokens.contains_key(name).then(|| fact.clone())).await
    }

    /// Takes the owner's tokens of nodes with this label back, until such a node starts again; false if there is none.
    pub(crate) async fn revoke_owner_tokens(&self, label: &str) -> Result<bool, StoreError> {
        let of_label = |state: &CredentialState| {
            let found = state.owners.iter().find(|(_, known)| *known == label);
            found.map(|(token, _)| CredentialFact::OwnerTokenRevoked { token: token.clone() })
        };
        let mut revoked = false;
        while self.write_if(of_label).await? {
            revoked = true;
        }
        Ok(revoked)
    }

    pub(crate) async fn issue_ticket(&self, ticket: SharedTicket) -> Result<(), StoreError> {
        self.write_if(|_| Some(CredentialFact::TicketIssued { ticket: ticket.clone() })).await.map(drop)
    }

    /// Takes a ticket: of any number of nodes that are shown it, one gets it.
    pub(crate) async fn take_ticket(&self, sha256: &str) -> Result<Option<SharedTicket>, StoreError> {
        // Somebody who guesses costs no more than a look.
        let is_known = || self.current().state.tickets.iter().any(|ticket| ticket.sha256 == sha256);
        if !is_known() {
            self.refresh_for_unknown().await;
        }
        if !is_known() {
            return Ok(None);
        }
        let taken = Mutex::new(None);
        let take = |state: &CredentialState| {
            let ticket = state.tickets.iter().find(|ticket| ticket.sha256 == sha256)?;
            *taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket.clone());
            Some(CredentialFact::TicketTaken { sha256: sha256.to_owned() })
        };
        let is_ours = self.write_if(take).await?;
        Ok(taken.into_inner().unwrap_or_else(PoisonError::into_inner).filter(|_| is_ours))
    }

    pub(crate) async fn issue_cookie(&self, cookie: BrowserCookie) -> Result<(), StoreError> {
        self.write_if(|_| Some(CredentialFact::CookieIssued { cookie: cookie.clone() })).await.map(drop)
    }

    pub(crate) async fn revoke_cookie(&self, sha256: &str) -> Result<(), StoreError> {
        let is_known = |state: &CredentialState| state.cookies.iter().any(|cookie| cookie.sha256 == sha256);
        let fact = CredentialFact::CookieRevoked { sha256: sha256.to_owned() };
        self.write_if(|state| is_known(state).then(|| fact.clone())).await.map(drop)
    }

    /// Sends every browser away; gives how many were in.
    pub(crate) async fn sign_out_browsers(&self) -> Result<usize, StoreError> {
        self.refresh().await?;
        let count = self.current().state.cookies.len();
        self.write_if(|_| Some(CredentialFact::BrowsersSignedOut { times: 1 })).await?;
        Ok(count)
    }

    pub(crate) fn cookie(&self, sha256: &str) -> Option<BrowserCookie> {
        self.current().state.cookies.iter().find(|cookie| cookie.sha256 == sha256).cloned()
    }

    pub(crate) fn sign_outs(&self) -> u64 {
        self.current().state.sign_outs
    }

    /// Changes whenever anything here does.
    pub(crate) fn version(&self) -> Seq {
        self.current().last_seq()
    }

    /// Writes what is decided from the newest state; false if nothing is to be written. If another node writes first it is
    /// decided anew.
    async fn write_if(&self, decide: impl Fn(&CredentialState) -> Option<CredentialFact>) -> Result<bool, StoreError> {
        let mut last = None;
        for _ in 0..MAX_TRIES {
            self.refresh().await?;
            let mut folded = (*self.current()).clone();
            let Some(fact) = decide(&folded.state) else { return Ok(false) };
            match self.inner.log.append_after(&folded, &fact).await {
                Ok(_) => {
                    self.inner.log.read_on(&mut folded).await?;
                    if let Err(error) = self.inner.log.compact_if_long(&mut folded).await {
                        tracing::warn!(%error, "the log of credentials stays long");
                    }
                    self.keep_newer(folded);
                    return Ok(true);
                }
                Err(gap @ StoreError::Gap { .. }) => last = Some(gap),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(StoreError::Closed))
    }

    fn keep_newer(&self, folded: FoldedFacts<CredentialState>) {
        let mut known = self.lock_known();
        if folded.last_seq() >= known.last_seq() {
            *known = Arc::new(folded);
        }
    }

    fn current(&self) -> Arc<FoldedFacts<CredentialState>> {
        Arc::clone(&self.lock_known())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_known(&self) -> MutexGuard<'_, Arc<FoldedFacts<CredentialState>>> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCredentials").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl FactState for CredentialState {
    type Fact = CredentialFact;

    fn apply(&mut self, fact: CredentialFact, written: FactEntry) {
        let now = unix_seconds(written.at);
        match fact {
            CredentialFact::TokenAdded { grant } => drop(self.tokens.insert(grant.name.clone(), grant)),
            CredentialFact::TokenRevoked { name } => drop(self.tokens.remove(&name)),
            CredentialFact::OwnerTokenKnown { token, label } => drop(self.owners.insert(token, label)),
            CredentialFact::OwnerTokenRevoked { token } => drop(self.owners.remove(&token)),
            CredentialFact::TicketIssued { ticket } => {
                self.tickets.retain(|known| known.expires > now);
                remove_oldest_access(&mut self.tickets, MAX_TICKETS, |known| known.token == ticket.token);
                self.tickets.push(ticket);
            }
            CredentialFact::TicketTaken { sha256 } => self.tickets.retain(|known| known.sha256 != sha256),
            CredentialFact::CookieIssued { cookie } => {
                self.cookies.retain(|known| known.expires > now);
                remove_oldest_access(&mut self.cookies, MAX_COOKIES, |known| known.token == cookie.token);
                self.cookies.push(cookie);
            }
            CredentialFact::CookieRevoked { sha256 } => self.cookies.retain(|known| known.sha256 != sha256),
            CredentialFact::BrowsersSignedOut { times } => {
                self.sign_outs += times;
                self.tickets.clear();
                self.cookies.clear();
            }
        }
    }

    fn facts(&self) -> Vec<CredentialFact> {
        let sign_outs = (self.sign_outs > 0).then_some(CredentialFact::BrowsersSignedOut { times: self.sign_outs });
        let tokens = self.tokens.values().map(|grant| CredentialFact::TokenAdded { grant: grant.clone() });
        let owners = self
            .owners
            .iter()
            .map(|(token, label)| CredentialFact::OwnerTokenKnown { token: token.clone(), label: label.clone() });
        let tickets = self.tickets.iter().map(|ticket| CredentialFact::TicketIssued { ticket: ticket.clone() });
        let cookies = self.cookies.iter().map(|cookie| CredentialFact::CookieIssued { cookie: cookie.clone() });
        sign_outs.into_iter().chain(tokens).chain(owners).chain(tickets).chain(cookies).collect()
    }
}

fn unix_seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros() / 1_000_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_store::{MemoryStore, read_scope_all};
    use secrecy::{ExposeSecret as _, SecretString};

    use super::*;
    use crate::paths::Paths;
    use crate::token::{TokenError, Tokens, add_shared_token, revoke_shared_token};

    fn ticket(sha256: &str, expires: u64) -> SharedTicket {
        let token = TokenId::of_secret(&SecretString::from("t".to_owned()));
        SharedTicket { sha256: sha256.to_owned(), token, expires }
    }

    #[tokio::test]
    async fn of_many_who_take_a_ticket_one_gets_it() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let one = SharedCredentials::load(Arc::clone(&store)).await.unwrap();
        let other = SharedCredentials::load(Arc::clone(&store)).await.unwrap();
        for n in 0..20 {
            let name = format!("{n}");
            one.issue_ticket(ticket(&name, u64::MAX)).await.unwrap();
            let (first, second) = tokio::join!(one.take_ticket(&name), other.take_ticket(&name));
            assert_eq!([first, second].into_iter().filter(|taken| matches!(taken, Ok(Some(_)))).count(), 1, "{n}");
        }
        assert_eq!(other.take_ticket("never").await.unwrap(), None);
    }

    #[tokio::test]
    async fn the_log_stays_short_and_folds_to_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let one = SharedCredentials::load(Arc::clone(&store)).await.unwrap();
        let owner = ticket("", 0).token;
        one.register_owner_token(owner.clone(), "rack-1").await.unwrap();
        one.sign_out_browsers().await.unwrap();
        for n in 0..500 {
            one.issue_ticket(ticket(&format!("{n}"), u64::MAX)).await.unwrap();
            one.take_ticket(&format!("{n}")).await.unwrap();
            one.register_owner_token(owner.clone(), "rack-1").await.unwrap();
        }
        assert!(read_scope_all(&*store, SCOPE).await.unwrap().len() < 500);
        let again = SharedCredentials::load(store).await.unwrap();
        assert_eq!((again.owner_tokens(), again.sign_outs()), (vec![(owner, "rack-1".to_owned())], 1));
    }

    #[tokio::test]
    async fn a_token_counts_where_it_was_read_and_ends_what_it_opened_when_it_is_revoked() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path().join("data"), None);
        paths.create_folders().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let one = SharedCredentials::load(Arc::clone(&store)).await.unwrap();
        let other = SharedCredentials::load(Arc::clone(&store)).await.unwrap();
        let tokens = Tokens::open(&paths).unwrap().with_shared(Some(other));
        let token = add_shared_token(&paths, &one, "phone", &[], None).await.unwrap();
        let twice = add_shared_token(&paths, &one, "phone", &[], None).await;
        assert!(matches!(twice, Err(TokenError::Exists(_))), "{twice:?}");
        let known = || tokens.identify_at(token.expose_secret(), ([127, 0, 0, 1], 1).into());
        assert!(known().is_none());
        assert!(tokens.refresh_for_unknown().await);
        let (identity, revoked) = known().unwrap();
        assert_eq!(identity.principal.as_str(), "phone");
        revoke_shared_token(&paths, &one, "phone").await.unwrap();
        tokens.refresh_for_unknown().await;
        assert!(known().is_none() && revoked.unwrap().is_cancelled());
        let unknown = revoke_shared_token(&paths, &one, "phone").await;
        assert!(matches!(unknown, Err(TokenError::Unknown(_))), "{unknown:?}");
    }
}
