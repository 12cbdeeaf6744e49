//! Somebody's sessions as they are now, and again as soon as they changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, Seq, SessionId};
use gander_store::{DeltaForm, SessionQuery, SessionStatus, SessionSummary, StoreError};
use tokio::time::{Instant, sleep, sleep_until};

use crate::Services;

/// Who waits for a change is answered after this time at the latest, so that a dead connection is noticed.
const MAX_WAIT: Duration = Duration::from_secs(25);
/// After a change so long is waited for more of it: a turn writes several facts at once.
const SETTLE_TIME: Duration = Duration::from_millis(60);
/// So many sessions that wait for their person are told at most.
const MAX_WAITING: u32 = 200;

/// Which sessions are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchQuery {
    /// Only titles that hold each of these words.
    pub text: Option<String>,
    /// Those put away, or the others.
    pub archived: bool,
    /// At most so many.
    pub limit: u32,
}

/// The sessions at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedSessions {
    /// Last changed first, each with the names of the clients that are attached to it.
    pub sessions: Vec<(SessionSummary, Vec<Arc<str>>)>,
    /// There are more than were asked for.
    pub more: bool,
    /// Whichever wait for their person, shown here or not.
    pub waiting: Vec<SessionId>,
}

impl WatchedSessions {
    /// The same text for the same content.
    pub fn next_cursor(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for (summary, clients) in &self.sessions {
            let SessionSummary { session, workspace, agent, title, updated_at, archived, messages, .. } = summary;
            (session, workspace, agent, title, updated_at.as_micros(), archived, messages, clients).hash(&mut hasher);
            watched_status_word(summary.state).hash(&mut hasher);
        }
        (&self.waiting, self.more).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// What a session does, in one word.
pub fn watched_status_word(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Idle => "idle",
        SessionStatus::Running => "running",
        SessionStatus::Awaiting => "waiting",
    }
}

/// The sessions now, or when they are no longer what this cursor stands for. Safe to drop at any time.
pub async fn watch_sessions(
    services: &Services,
    principal: &Principal,
    query: &WatchQuery,
    after: Option<&str>,
) -> Result<WatchedSessions, StoreError> {
    let (mut changes, mut clients) = (services.hub.store().changes(principal), services.clients.changes());
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        // Before the list is read: what changes meanwhile is seen in the next round.
        changes.mark_unchanged();
        clients.mark_unchanged();
        let now = read_watched_sessions(services, principal, query).await?;
        if after != Some(now.next_cursor().as_str()) {
            return Ok(now);
        }
        let is_same_company =
            || now.sessions.iter().all(|(shown, names)| services.clients.attached_names(shown.session) == *names);
        loop {
            tokio::select! {
                // The sender lives in the store, which lives as long as the services do.
                _ = changes.changed() => break sleep(SETTLE_TIME).await,
                // Everybody is told who comes and goes anywhere; it is looked up without the store whether that is here.
                _ = clients.changed() => if !is_same_company() { break sleep(SETTLE_TIME).await },
                () = sleep_until(deadline) => return Ok(now),
            }
        }
    }
}

/// The place of a log's last entry, as soon as that is not this one or an older one. Safe to drop at any time.
pub async fn watch_session_log(services: &Services, session: SessionId, after: Seq) -> Result<Seq, StoreError> {
    let head = services.hub.store().head(session).await?;
    if head > after {
        return Ok(head);
    }
    let mut follower = services.hub.follow_session(session, head, DeltaForm::Joined);
    tokio::select! {
        batch = follower.next_batch() => {
            batch?;
            sleep(SETTLE_TIME).await;
        }
        () = sleep(MAX_WAIT) => {}
    }
    services.hub.store().head(session).await
}

async fn read_watched_sessions(
    services: &Services,
    principal: &Principal,
    query: &WatchQuery,
) -> Result<WatchedSessions, StoreError> {
    let store = services.hub.store();
    let asked = SessionQuery {
        principal: principal.clone(),
        workspace: None,
        text: query.text.clone(),
        archived: query.archived,
        non_empty: false,
        state: None,
        after: None,
        limit: query.limit,
    };
    let awaiting = SessionQuery {
        text: None,
        archived: false,
        state: Some(SessionStatus::Awaiting),
        limit: MAX_WAITING,
        ..asked.clone()
    };
    let (page, awaiting) = futures::try_join!(store.sessions(asked), store.sessions(awaiting))?;
    let clients = |summary: SessionSummary| {
        let attached = services.clients.attached_names(summary.session);
        (summary, attached)
    };
    Ok(WatchedSessions {
        sessions: page.sessions.into_iter().map(clients).collect(),
        more: page.next.is_some(),
        waiting: awaiting.sessions.into_iter().map(|summary| summary.session).collect(),
    })
}
