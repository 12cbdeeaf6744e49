//! How browsers come in: a one-use ticket in the address, traded for a cookie that stands for the token behind it.
//!
//! A browser cannot send a token with a navigation, an `EventSource` or a WebSocket, and an address is kept in histories
//! and logs. So an address carries a ticket, which is worth nothing once it was used or half a minute has passed. The
//! cookie has no authority of its own: it names the token that made the ticket, and ends with it.
//!
//! Browsers send a cookie to every port of a host, so whatever listens on another port of this machine may see it. It
//! counts only together with a page key, which the page keeps where pages of other ports cannot read it.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gander_domain::caller::Identity;
use tokio_util::sync::CancellationToken;

use crate::credential_hashes::{BrowserCookie, MAX_COOKIES, MAX_TICKETS, digest, remove_oldest_access};
use crate::paths::{Paths, hex_path_text, write_private_file};
use crate::shared_credentials::{SharedCredentials, SharedTicket};
use crate::token::{TokenId, Tokens, random_token_secret};

/// How long a ticket for a browser on this machine is good.
pub const TICKET_TTL: Duration = Duration::from_secs(30);
/// How long a ticket that is scanned with a phone is good.
pub const PHONE_TICKET_TTL: Duration = Duration::from_secs(5 * 60);
/// How long a browser stays in without coming in anew.
pub const COOKIE_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The browsers of a data directory. Tickets live in memory; cookies, as hashes, outlive the server. Where nodes share a
/// database both are there, as hashes, and count at every node.
#[derive(Debug)]
pub struct BrowserAccess {
    file: PathBuf,
    shared: Option<SharedCredentials>,
    state: Mutex<AccessState>,
}

#[derive(Debug, Default)]
struct AccessState {
    tickets: Vec<Ticket>,
    cookies: Vec<BrowserCookie>,
    /// Cancelled when every browser is sent away; those that come in later get a new one.
    revoked: CancellationToken,
    /// How often that happened at any node, as far as is known here.
    sign_outs: u64,
}

#[derive(Debug)]
struct Ticket {
    hash: [u8; 32],
    token: TokenId,
    until: Instant,
}

/// What a browser gets for a ticket.
#[derive(Debug)]
pub struct BrowserSecrets {
    /// Sent by the browser with every request.
    pub cookie: String,
    /// Sent by the page itself, beside the cookie.
    pub page_key: String,
}

/// A browser that showed a ticket or a cookie.
#[derive(Clone, Debug)]
pub struct BrowserCredential {
    /// Who the token behind it stands for, as of now.
    pub identity: Identity,
    /// Which token that is.
    pub token: TokenId,
    /// Cancelled when browsers are sent away: what was opened with this credential ends.
    pub revoked: CancellationToken,
}

impl BrowserAccess {
    /// The browsers of a data directory. A file that cannot be read lets nobody in.
    pub fn open(paths: &Paths) -> Self {
        let file = paths.browsers_file();
        let cookies = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let state = AccessState { cookies: cookies.unwrap_or_default(), ..AccessState::default() };
        Self { file, shared: None, state: Mutex::new(state) }
    }

    /// Keeps them for every node.
    #[must_use]
    pub fn with_shared(mut self, shared: Option<SharedCredentials>) -> Self {
        let sign_outs = shared.as_ref().map_or(0, SharedCredentials::sign_outs);
        self.lock_state().sign_outs = sign_outs;
        self.shared = shared;
        self
    }

    /// Makes a ticket that stands for this token until the time is over.
    pub async fn issue_ticket(&self, token: TokenId, now: Instant, ttl: Duration) -> io::Result<String> {
        let ticket = random_token_secret("ticket_")?;
        if let Some(shared) = &self.shared {
            let (sha256, expires) = (hex_path_text(&digest(&ticket)), SystemTime::now() + ttl);
            let expires = access_unix_seconds(expires);
            shared.issue_ticket(SharedTicket { sha256, token, expires }).await.map_err(io::Error::other)?;
            return Ok(ticket);
        }
        let mut state = self.lock_state();
        state.tickets.retain(|ticket| ticket.until > now);
        remove_oldest_access(&mut state.tickets, MAX_TICKETS, |ticket| ticket.token == token);
        state.tickets.push(Ticket { hash: digest(&ticket), token, until: now + ttl });
        Ok(ticket)
    }

    /// Takes a ticket. It is gone afterwards, whatever comes of it.
    pub async fn redeem_ticket(&self, tokens: &Tokens, ticket: &str, now: Instant) -> Option<BrowserCredential> {
        match &self.shared {
            Some(shared) => {
                let taken = shared.take_ticket(&hex_path_text(&digest(ticket))).await;
                let taken = taken.inspect_err(|error| tracing::warn!(%error, "a browser's ticket was not taken"));
                let in_time = |ticket: &SharedTicket| ticket.expires >= access_unix_seconds(SystemTime::now());
                let token = taken.ok().flatten().filter(in_time)?.token;
                self.credential_of(tokens, token)
            }
            None => self.redeem_own_ticket(tokens, ticket, now),
        }
    }

    fn redeem_own_ticket(&self, tokens: &Tokens, ticket: &str, now: Instant) -> Option<BrowserCredential> {
        let mut state = self.lock_state();
        // Compared as hashes: how far two of them agree says nothing about the ticket.
        let hash = digest(ticket);
        let found = state.tickets.iter().position(|ticket| ticket.hash == hash)?;
        let Ticket { token, until, .. } = state.tickets.remove(found);
        let identity = tokens.identity_of(&token).filter(|_| until > now)?;
        Some(BrowserCredential { identity, token, revoked: state.revoked.clone() })
    }

    /// Makes a cookie and a page key that stand for this token.
    pub async fn issue_cookie(&self, token: TokenId, now: SystemTime) -> io::Result<BrowserSecrets> {
        let secrets =
            BrowserSecrets { cookie: random_token_secret("browser_")?, page_key: random_token_secret("page_")? };
        let seconds = access_unix_seconds(now);
        let expires = seconds + COOKIE_TTL.as_secs();
        let [sha256, page_key_sha256] =
            [&secrets.cookie, &secrets.page_key].map(|secret| hex_path_text(&digest(secret)));
        let cookie = BrowserCookie { sha256, page_key_sha256, token, expires };
        if let Some(shared) = &self.shared {
            shared.issue_cookie(cookie).await.map_err(io::Error::other)?;
            return Ok(secrets);
        }
        let mut state = self.lock_state();
        let mut cookies: Vec<BrowserCookie> =
            state.cookies.iter().filter(|cookie| cookie.expires > seconds).cloned().collect();
        remove_oldest_access(&mut cookies, MAX_COOKIES, |known| known.token == cookie.token);
        cookies.push(cookie);
        self.write_cookies(&mut state, cookies)?;
        Ok(secrets)
    }

    /// Who a cookie stands for, if the page that sends it has the key that came with it. One that another node made a
    /// moment ago is known here after [`Tokens::refresh_for_unknown`].
    pub fn identify_cookie(
        &self,
        tokens: &Tokens,
        secrets: &BrowserSecrets,
        now: SystemTime,
    ) -> Option<BrowserCredential> {
        let [hash, page_key_hash] = [&secrets.cookie, &secrets.page_key].map(|secret| hex_path_text(&digest(secret)));
        let own = self.lock_state().cookies.iter().find(|known| known.sha256 == hash).cloned();
        let found = own.or_else(|| self.shared.as_ref()?.cookie(&hash))?;
        let is_good = found.expires > access_unix_seconds(now) && found.page_key_sha256 == page_key_hash;
        is_good.then(|| self.credential_of(tokens, found.token)).flatten()
    }

    fn credential_of(&self, tokens: &Tokens, token: TokenId) -> Option<BrowserCredential> {
        let identity = tokens.identity_of(&token)?;
        self.end_signed_out();
        Some(BrowserCredential { identity, token, revoked: self.lock_state().revoked.clone() })
    }

    /// Ends what browsers opened that another node sent away.
    pub fn end_signed_out(&self) {
        let Some(shared) = &self.shared else { return };
        let (mut state, sign_outs) = (self.lock_state(), shared.sign_outs());
        if state.sign_outs != sign_outs {
            state.sign_outs = sign_outs;
            std::mem::take(&mut state.revoked).cancel();
        }
    }

    /// Ends one cookie.
    pub async fn revoke_cookie(&self, cookie: &str) -> io::Result<()> {
        let hash = hex_path_text(&digest(cookie));
        if let Some(shared) = &self.shared {
            shared.revoke_cookie(&hash).await.map_err(io::Error::other)?;
        }
        let mut state = self.lock_state();
        let left = state.cookies.iter().filter(|known| known.sha256 != hash).cloned().collect();
        self.write_cookies(&mut state, left)
    }

    /// Ends every ticket and cookie, and what was opened with them, at every node. Gives the number of cookies.
    pub async fn revoke_all(&self) -> io::Result<usize> {
        let elsewhere = match &self.shared {
            Some(shared) => shared.sign_out_browsers().await.map_err(io::Error::other)?,
            None => 0,
        };
        let mut state = self.lock_state();
        let count = state.cookies.len() + elsewhere;
        self.write_cookies(&mut state, Vec::new())?;
        state.tickets.clear();
        std::mem::take(&mut state.revoked).cancel();
        Ok(count)
    }

    /// On disk first: a browser that was told it is in stays in after a crash, one that was sent away stays out.
    fn write_cookies(&self, state: &mut AccessState, cookies: Vec<BrowserCookie>) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&cookies).map_err(io::Error::other)?;
        write_private_file(&self.file, &text)?;
        state.cookies = cookies;
        Ok(())
    }

    fn lock_state(&self) -> MutexGuard<'_, AccessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn access_unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_domain::caller::Scope;
    use secrecy::ExposeSecret;

    use super::*;
    use crate::token::{add_token, revoke_token};

    fn opened(root: &tempfile::TempDir) -> (Paths, Tokens) {
        let paths = Paths::new(root.path().join("data"), None);
        paths.create_folders().unwrap();
        let tokens = Tokens::open(&paths).unwrap();
        (paths, tokens)
    }

    #[tokio::test]
    async fn a_ticket_is_good_once_and_not_for_long() {
        let root = tempfile::tempdir().unwrap();
        let (paths, tokens) = opened(&root);
        let (browsers, now) = (BrowserAccess::open(&paths), Instant::now());
        let ticket = browsers.issue_ticket(tokens.owner_id(), now, TICKET_TTL).await.unwrap();
        let redeemed = browsers.redeem_ticket(&tokens, &ticket, now + TICKET_TTL / 2).await.unwrap();
        assert_eq!(redeemed.identity, Identity::owner());
        assert!(browsers.redeem_ticket(&tokens, &ticket, now).await.is_none(), "it was used");
        let late = browsers.issue_ticket(tokens.owner_id(), now, TICKET_TTL).await.unwrap();
        assert!(browsers.redeem_ticket(&tokens, &late, now + TICKET_TTL).await.is_none(), "it is over");
        assert!(browsers.redeem_ticket(&tokens, "ticket_", now).await.is_none());
    }

    #[tokio::test]
    async fn a_cookie_outlives_the_server_and_ends_with_its_token() {
        let root = tempfile::tempdir().unwrap();
        let (paths, tokens) = opened(&root);
        let (browsers, now) = (BrowserAccess::open(&paths), SystemTime::now());
        let token = add_token(&paths, "phone", &[Scope::Prompt], None).unwrap();
        let id = tokens.id_of(token.expose_secret(), ([127, 0, 0, 1], 1).into()).unwrap();
        let cookie = browsers.issue_cookie(id, now).await.unwrap();
        let stored = std::fs::read_to_string(paths.browsers_file()).unwrap();
        assert!(!stored.contains(&cookie.cookie) && !stored.contains(&cookie.page_key));
        let later = BrowserAccess::open(&paths);
        let credential = later.identify_cookie(&tokens, &cookie, now).unwrap();
        assert_eq!(credential.identity.scopes, [Scope::Read, Scope::Prompt].into());
        assert!(later.identify_cookie(&tokens, &cookie, now + COOKIE_TTL).is_none(), "it is over");
        revoke_token(&paths, "phone").unwrap();
        assert!(later.identify_cookie(&tokens, &cookie, now).is_none(), "its token is gone");
    }

    #[tokio::test]
    async fn a_cookie_without_its_page_key_is_worth_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (paths, tokens) = opened(&root);
        let (browsers, now) = (BrowserAccess::open(&paths), SystemTime::now());
        let first = browsers.issue_cookie(tokens.owner_id(), now).await.unwrap();
        let second = browsers.issue_cookie(tokens.owner_id(), now).await.unwrap();
        for page_key in ["", &second.page_key, &first.cookie] {
            let stolen = BrowserSecrets { cookie: first.cookie.clone(), page_key: page_key.to_owned() };
            assert!(browsers.identify_cookie(&tokens, &stolen, now).is_none(), "{page_key}");
        }
        assert!(browsers.identify_cookie(&tokens, &first, now).is_some());
    }

    #[tokio::test]
    async fn a_token_pushes_out_only_its_own_tickets_and_cookies() {
        let root = tempfile::tempdir().unwrap();
        let (paths, tokens) = opened(&root);
        let (browsers, now, instant) = (BrowserAccess::open(&paths), SystemTime::now(), Instant::now());
        let token = add_token(&paths, "guest", &[Scope::Read], None).unwrap();
        let guest = tokens.id_of(token.expose_secret(), ([127, 0, 0, 1], 1).into()).unwrap();
        let (cookie, ticket) = (
            browsers.issue_cookie(tokens.owner_id(), now).await.unwrap(),
            browsers.issue_ticket(tokens.owner_id(), instant, TICKET_TTL).await.unwrap(),
        );
        let first = browsers.issue_cookie(guest.clone(), now).await.unwrap();
        for _ in 0..MAX_COOKIES {
            browsers.issue_cookie(guest.clone(), now).await.unwrap();
            browsers.issue_ticket(guest.clone(), instant, TICKET_TTL).await.unwrap();
        }
        assert!(browsers.identify_cookie(&tokens, &first, now).is_none(), "the guest's oldest made room");
        assert!(browsers.identify_cookie(&tokens, &cookie, now).is_some());
        assert!(browsers.redeem_ticket(&tokens, &ticket, instant).await.is_some());
    }

    #[tokio::test]
    async fn revoking_ends_cookies_tickets_and_what_they_opened() {
        let root = tempfile::tempdir().unwrap();
        let (paths, tokens) = opened(&root);
        let (browsers, now, instant) = (BrowserAccess::open(&paths), SystemTime::now(), Instant::now());
        let cookie = browsers.issue_cookie(tokens.owner_id(), now).await.unwrap();
        let ticket = browsers.issue_ticket(tokens.owner_id(), instant, TICKET_TTL).await.unwrap();
        let open = browsers.identify_cookie(&tokens, &cookie, now).unwrap();
        assert_eq!(browsers.revoke_all().await.unwrap(), 1);
        assert!(open.revoked.is_cancelled());
        assert!(browsers.identify_cookie(&tokens, &cookie, now).is_none());
        assert!(browsers.redeem_ticket(&tokens, &ticket, instant).await.is_none());
        let next = browsers.issue_cookie(tokens.owner_id(), now).await.unwrap();
        assert!(!browsers.identify_cookie(&tokens, &next, now).unwrap().revoked.is_cancelled());
        browsers.revoke_cookie(&next.cookie).await.unwrap();
        assert!(BrowserAccess::open(&paths).identify_cookie(&tokens, &next, now).is_none());
    }
}
