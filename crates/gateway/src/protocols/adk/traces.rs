//! What pages show of a session as traces: read from its log, kept nowhere else.

use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_services::sessions::SessionFilter;
use gander_store::{DeltaForm, SessionSummary, read_all};
use gander_wire::adk::trace::{adk_session_trace_spans, adk_trace_span_attributes};
use gander_wire::adk::{AdkRefusal, PROTOCOL_NAME};
use serde_json::Value;
use uuid::Uuid;

use super::{Adk, AppUser, LocatedSession, adk_session_refusal, adk_store_refusal};

/// Sessions that changed last, among which that of an event is looked for.
const MAX_RECENT_SESSIONS: u32 = 100;

/// So many of them are read for one event.
const MAX_SESSIONS_READ: usize = 8;

/// Ids and entries take their times apart, in microseconds.
const CLOCK_SLACK_MICROS: i64 = 1_000_000;

impl Adk {
    /// All spans of a session; none if there is no such session. The page names no user.
    pub async fn session_spans(&self, caller: &Caller, app: &str, name: &str) -> Result<Vec<Value>, AdkRefusal> {
        let user = caller.adk_user.clone().unwrap_or_else(|| self.settings.user.clone());
        let located = match self.find_session(caller, AppUser { app: app.to_owned(), user }, name).await {
            Err(error) if error.status == 404 => match name.parse() {
                Ok(session) => self.find_own_session(caller, session).await?,
                Err(_) => None,
            },
            found => Some(found?),
        };
        match located {
            Some(located) => self.load_spans(&located).await,
            None => Ok(Vec::new()),
        }
    }

    /// What is known of one event. Its id says when it was: only sessions that were there then are read.
    pub async fn event_trace(&self, caller: &Caller, event: &str) -> Result<Option<Value>, AdkRefusal> {
        let Some(at) = Uuid::parse_str(event).ok().and_then(trace_id_micros) else { return Ok(None) };
        let filter = SessionFilter { limit: MAX_RECENT_SESSIONS, ..SessionFilter::default() };
        let recent = self.services.sessions.list(caller, filter).await.map_err(adk_session_refusal)?.sessions;
        let was_there = |summary: &&SessionSummary| {
            (summary.created_at.as_micros() - CLOCK_SLACK_MICROS..=summary.updated_at.as_micros() + CLOCK_SLACK_MICROS)
                .contains(&at)
        };
        for summary in recent.iter().filter(was_there).take(MAX_SESSIONS_READ) {
            let Some(located) = self.find_own_session(caller, summary.session).await? else { continue };
            if let Some(known) = adk_trace_span_attributes(&self.load_spans(&located).await?, event) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    async fn load_spans(&self, located: &LocatedSession) -> Result<Vec<Value>, AdkRefusal> {
        let entries = read_all(&**self.services.hub.store(), located.session, DeltaForm::Joined)
            .await
            .map_err(adk_store_refusal)?;
        Ok(adk_session_trace_spans(&entries, &located.name))
    }

    /// A session of this caller by its id, as ADK names it.
    async fn find_own_session(
        &self,
        caller: &Caller,
        session: SessionId,
    ) -> Result<Option<LocatedSession>, AdkRefusal> {
        let summary = match self.services.sessions.find(caller, session).await {
            Err(error) if error.is_unknown() => return Ok(None),
            found => found.map_err(adk_session_refusal)?,
        };
        let aliases = self.services.sessions.aliases(caller, session).await.map_err(adk_session_refusal)?;
        let alias = aliases.iter().find(|alias| alias.door == PROTOCOL_NAME);
        let app_user = match alias.and_then(|alias| alias.namespace.split_once('/')) {
            Some((app, user)) => AppUser { app: app.to_owned(), user: user.to_owned() },
            None => AppUser { app: summary.agent, user: self.settings.user.clone() },
        };
        let name = alias.map_or_else(|| session.to_string(), |alias| alias.text.clone());
        let is_theirs = self.check_user(caller, &app_user).is_ok();
        Ok(is_theirs.then_some(LocatedSession { session, app_user, name }))
    }
}

/// When an id was made, in microseconds.
fn trace_id_micros(id: Uuid) -> Option<i64> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    micros.checked_add(i64::from(nanos / 1_000))
}
