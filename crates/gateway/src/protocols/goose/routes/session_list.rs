//! Sessions in lists: all of them, those that a search finds, and how much they spent.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request};
use bytes::Bytes;
use futures::StreamExt as _;
use gander_domain::Policy;
use gander_http::sse_response::SsePermit;
use gander_services::sessions::SessionFilter;
use gander_store::{PageKey, SessionSummary, SummaryUsage};
use gander_wire::goose::session::{SessionSummaryInput, SummaryTokens, goose_session_summary};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GooseCaller, HandlerResult, goose_json_response, parse_goose_limit};
use crate::protocols::goose::error::{GooseError, goose_bad_request};
use crate::protocols::goose::sessions;

/// Sessions on a page at most, where pages are asked for.
const MAX_PAGE: usize = 1_000;

/// Sessions that are read from the store in one go: about 100 KiB of an answer.
const STORE_PAGE: u32 = 32;

const LIST_START: &str = "{\"sessions\":[";
const EMPTY_LIST: &str = "{\"sessions\":[]";

/// Sessions that a search finds at most, as in goose.
const MAX_FOUND: usize = 50;

/// Pages are ours: goose's own clients ask for everything and never turn a page.
#[derive(Deserialize)]
pub(crate) struct PageQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /sessions`: all of them, or those of a page and where the next one begins. Written while it is read: there may be many.
pub(crate) async fn list_goose_sessions(
    caller: GooseCaller,
    query: Result<Query<PageQuery>, QueryRejection>,
    request: Request,
) -> HandlerResult {
    let Query(PageQuery { limit: said, cursor }) = query.map_err(|error| goose_bad_request(error.body_text()))?;
    let after = cursor.map(|cursor| cursor.parse::<PageKey>()).transpose().map_err(goose_bad_request)?;
    let limit = match parse_goose_limit(said.as_deref(), MAX_PAGE)? {
        None if after.is_some() => Some(MAX_PAGE),
        limit => limit,
    };
    let permit = SsePermit::new(&caller.state, &caller.identity, request.extensions());
    let permit = permit.map_err(|_| GooseError::new(StatusCode::TOO_MANY_REQUESTS, "too many streams are open"))?;
    let mut list = SessionList::new(caller, SessionPages::new(None, after, limit.unwrap_or(usize::MAX)));
    // What fails at once is answered with its status; later there is only the end of the connection.
    let first = list.next_piece().await?;
    let rest = futures::stream::try_unfold(list, |mut list| async move {
        let piece = list.next_piece().await.map_err(|error| std::io::Error::other(error.message))?;
        Ok::<_, std::io::Error>(piece.map(|piece| (piece, list)))
    });
    Ok(permit.json_response(futures::stream::iter(first.map(Ok)).chain(rest)))
}

/// `GET /sessions/search`: by words of the title.
pub(crate) async fn search_goose_sessions(
    caller: GooseCaller,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(SearchQuery { query, limit: said, after_date, before_date }) =
        query.map_err(|_| goose_bad_request("query is missing"))?;
    let words = query.trim();
    if words.is_empty() {
        return Err(goose_bad_request("query is missing"));
    }
    let limit = parse_goose_limit(said.as_deref(), MAX_FOUND)?.unwrap_or(10);
    let (after, before) =
        (parse_session_time_micros(after_date.as_deref())?, parse_session_time_micros(before_date.as_deref())?);
    let in_time = |summary: &&SessionSummary| {
        let at = summary.updated_at.as_micros();
        after.is_none_or(|after| at >= after) && before.is_none_or(|before| at <= before)
    };
    let mut pages = SessionPages::new(Some(words.to_owned()), None, usize::MAX);
    let mut found = Vec::new();
    while let (true, Some(page)) = (found.len() < limit, pages.next_page(&caller).await?) {
        for summary in page.iter().filter(in_time).take(limit - found.len()) {
            found.push(goose_session_list_row(&caller, summary).await?);
        }
    }
    goose_json_response(Value::Array(found))
}

#[derive(Deserialize)]
pub(crate) struct SearchQuery {
    query: String,
    limit: Option<String>,
    after_date: Option<String>,
    before_date: Option<String>,
}

/// `GET /sessions/insights`.
pub(crate) async fn get_session_insights(caller: GooseCaller) -> HandlerResult {
    let mut pages = SessionPages::new(None, None, usize::MAX);
    let (mut count, mut tokens) = (0, 0);
    while let Some(page) = pages.next_page(&caller).await? {
        count += page.len();
        for summary in &page {
            tokens += goose_session_list_row(&caller, summary).await?["accumulated_total_tokens"].as_u64().unwrap_or(0);
        }
    }
    goose_json_response(json!({ "totalSessions": count, "totalTokens": tokens }))
}

/// Sessions as they are read from the store, a page at a time.
struct SessionPages {
    text: Option<String>,
    /// Where the next page begins; none before the first and after the last.
    after: Option<PageKey>,
    wanted: usize,
    over: bool,
}

impl SessionPages {
    fn new(text: Option<String>, after: Option<PageKey>, wanted: usize) -> Self {
        Self { text, after, wanted, over: false }
    }

    async fn next_page(&mut self, caller: &GooseCaller) -> Result<Option<Vec<SessionSummary>>, GooseError> {
        if self.over || self.wanted == 0 {
            return Ok(None);
        }
        let filter = SessionFilter {
            text: self.text.clone(),
            after: self.after,
            limit: u32::try_from(self.wanted).unwrap_or(u32::MAX).min(STORE_PAGE),
            ..SessionFilter::default()
        };
        let page = caller.services().sessions.list(&caller.peer.caller, filter).await?;
        self.wanted -= page.sessions.len().min(self.wanted);
        (self.over, self.after) = (page.next.is_none(), page.next);
        Ok(Some(page.sessions))
    }
}

/// The object that lists sessions, a page at a time.
struct SessionList {
    caller: GooseCaller,
    pages: SessionPages,
    begun: bool,
    ended: bool,
}

impl SessionList {
    fn new(caller: GooseCaller, pages: SessionPages) -> Self {
        Self { caller, pages, begun: false, ended: false }
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, GooseError> {
        if self.ended {
            return Ok(None);
        }
        while let Some(page) = self.pages.next_page(&self.caller).await? {
            let mut text = String::new();
            for summary in &page {
                text.push_str(if self.begun { "," } else { LIST_START });
                text.push_str(&goose_session_list_row(&self.caller, summary).await?.to_string());
                self.begun = true;
            }
            if !text.is_empty() {
                return Ok(Some(text.into()));
            }
        }
        self.ended = true;
        Ok(Some(self.list_end().into()))
    }

    fn list_end(&self) -> String {
        let list = if self.begun { "]" } else { EMPTY_LIST };
        match self.pages.after {
            Some(next) => format!("{list},\"next_cursor\":{}}}", json!(next.to_string())),
            None => format!("{list}}}"),
        }
    }
}

/// A session in a list. One from before its usage was kept with the list is looked at itself.
async fn goose_session_list_row(caller: &GooseCaller, summary: &SessionSummary) -> Result<Value, GooseError> {
    let setting = caller.services().default_session_settings().policy;
    let object = match session_summary_input(summary, setting) {
        Some(input) => goose_session_summary(&input),
        None => {
            let view = sessions::find_own_goose_session(caller.services(), &caller.peer, summary.session).await?;
            goose_session_summary(&SessionSummaryInput::from_view(
                &view,
                view.settings.session_policy().under_setting(setting),
            ))
        }
    };
    Ok(Value::Object(object))
}

fn session_summary_input(summary: &SessionSummary, setting: Policy) -> Option<SessionSummaryInput<'_>> {
    let SummaryUsage { policy, input, output, cost, last_call } = summary.usage?;
    Some(SessionSummaryInput {
        policy: policy.under_setting(setting),
        tokens: SummaryTokens { input, output, cost, last_call },
        session: summary.session,
        workspace: &summary.workspace,
        title: Some(summary.title.as_str()).filter(|title| !title.is_empty()),
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        archived: summary.archived,
        messages: summary.messages,
    })
}

fn parse_session_time_micros(text: Option<&str>) -> Result<Option<i64>, GooseError> {
    let Some(text) = text else { return Ok(None) };
    let at: jiff::Timestamp =
        text.parse().map_err(|_| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("not a date: {text}")))?;
    Ok(Some(at.as_microsecond()))
}
