//! Sessions: listed, shown, renamed, copied, moved between servers.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request};
use bytes::Bytes;
use gander_domain::{Command, Policy, ResetReason, Seq, SessionId, SessionView};
use gander_http::sse_response::SsePermit;
use gander_services::apply_recipe::{ApplyRecipe, apply_recipe};
use gander_services::errors::service_error_from_store;
use gander_services::sessions::{Fork, SessionFilter, SessionFolder};
use gander_services::user_store::{Collection, UserStore};
use gander_store::clock::SystemIds;
use gander_store::{PageKey, SessionSummary, SummaryUsage};
use gander_wire::goose::input;
use gander_wire::goose::session::{SessionSummaryInput, SummaryTokens, goose_session_summary};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    GooseCaller, HandlerResult, SessionInPath, goose_empty_response, goose_json_response, parse_goose_limit,
    read_goose_json, read_goose_json_for_session,
};
use crate::json_stream::{JsonStream, JsonStyle};
use crate::protocols::goose::error::{GooseError, goose_bad_request};
use crate::protocols::goose::{extensions, recipes, runs, sessions};

/// Sessions on a page at most, where pages are asked for.
const MAX_PAGE: usize = 1_000;

/// Sessions that are read from the store in one go.
const STORE_PAGE: u32 = 500;

/// Sessions that a search finds at most, as in goose.
const MAX_FOUND: usize = 50;

/// Pages are ours: goose's own clients ask for everything and never turn a page.
#[derive(Deserialize)]
pub(crate) struct PageQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /sessions`: all of them, or those of a page and where the next one begins.
pub(crate) async fn list_goose_sessions(
    caller: GooseCaller,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(PageQuery { limit: said, cursor }) = query.map_err(|error| goose_bad_request(error.body_text()))?;
    let after = cursor.map(|cursor| cursor.parse::<PageKey>()).transpose().map_err(goose_bad_request)?;
    let limit = match parse_goose_limit(said.as_deref(), MAX_PAGE)? {
        None if after.is_some() => Some(MAX_PAGE),
        limit => limit,
    };
    let mut pages = SessionPages::new(None, after, limit.unwrap_or(usize::MAX));
    let mut sessions = Vec::new();
    while let Some(page) = pages.next_page(&caller).await? {
        for summary in &page {
            sessions.push(goose_session_list_row(&caller, summary).await?);
        }
    }
    let mut answer = json!({ "sessions": sessions });
    if let Some(next) = pages.after {
        answer["next_cursor"] = json!(next.to_string());
    }
    goose_json_response(answer)
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

/// `POST /sessions/import`.
pub(crate) async fn post_session_import(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Import {
        json: String,
    }
    let view = sessions::import_goose_session(caller.services(), &caller.peer, &read_goose_json::<Import>(&body)?.json)
        .await?;
    goose_json_response(Value::Object(sessions::goose_session_with_conversation(caller.services(), &view).await?))
}

/// `DELETE /sessions/{id}`.
pub(crate) async fn delete_goose_session(caller: GooseCaller, SessionInPath(session): SessionInPath) -> HandlerResult {
    caller.services().sessions.delete(&caller.peer.caller, session).await?;
    goose_empty_response()
}

/// `PUT /sessions/{id}/name`.
pub(crate) async fn rename_goose_session(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    #[derive(Deserialize)]
    struct Rename {
        name: String,
    }
    let title = sessions::check_session_title(&read_goose_json_for_session::<Rename>(session, &body)?.name)?;
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    runs::send_goose_command(caller.services(), &caller.peer, session, Command::SetTitle { title }).await?;
    goose_empty_response()
}

/// `PUT /sessions/{id}/user_recipe_values`.
pub(crate) async fn set_session_recipe_values(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Values {
        #[serde(alias = "user_recipe_values")]
        user_recipe_values: serde_json::Map<String, Value>,
    }
    let values = Value::Object(read_goose_json_for_session::<Values>(session, &body)?.user_recipe_values);
    let (services, peer) = (caller.services(), &caller.peer);
    let view = sessions::find_own_goose_session(services, peer, session).await?;
    let object = sessions::load_goose_session_object(services, &view).await?;
    if object["recipe"].is_null() {
        return Err(GooseError::new(StatusCode::NOT_FOUND, "Session has no recipe"));
    }
    let user_store = UserStore::open(services.hub.store(), &peer.caller.principal);
    let kept = json!({ "user_recipe_values": values });
    let put = user_store.put(Collection::Session, &session.to_string(), kept).await;
    put.map_err(|error| service_error_from_store(&error))?;
    let given = recipes::goose_recipe_values(values.as_object().unwrap_or(&serde_json::Map::new()));
    let wish = ApplyRecipe {
        recipe: recipes::check_goose_recipe(&object["recipe"])?,
        values: given,
        ..ApplyRecipe::default()
    };
    goose_json_response(json!({ "recipe": apply_recipe(services, &peer.caller, &view, wish).await?.recipe }))
}

/// `GET /sessions/{id}/export`: a JSON string that holds JSON.
pub(crate) async fn get_session_export(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    request: Request,
) -> HandlerResult {
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    caller.services().require_load(&view)?;
    let permit = SsePermit::new(&caller.state, &caller.identity, request.extensions());
    let permit = permit.map_err(|_| GooseError::new(StatusCode::TOO_MANY_REQUESTS, "too many streams are open"))?;
    let object = sessions::load_goose_session_object(caller.services(), &view).await?;
    let lists = vec![("conversation", sessions::session_conversation_list(caller.services(), &view).await?)];
    Ok(permit.json_response(JsonStream::new(JsonStyle::File, &object, lists, Some("message_count")).into_stream()))
}

/// `GET /sessions/{id}/extensions`.
pub(crate) async fn list_session_extensions(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
) -> HandlerResult {
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    goose_json_response(json!({ "extensions": extensions::goose_session_extensions(caller.services(), &view) }))
}

/// `POST /sessions/{id}/fork`: goes back, in this session or in a copy of it.
pub(crate) async fn post_session_fork(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    #[derive(Deserialize)]
    struct Fork {
        timestamp: Option<i64>,
        truncate: bool,
        copy: bool,
    }
    let Fork { timestamp, truncate, copy } = read_goose_json_for_session(session, &body)?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    let _whole = caller.state.whole_response_permit().await?;
    let transcript = sessions::load_session_transcript(caller.services(), session).await?;
    let count = match (truncate, timestamp) {
        (true, Some(second)) => transcript.count_before_second(second),
        (true, None) => return Err(goose_bad_request("truncate needs a timestamp")),
        (false, _) => transcript.all_messages().len(),
    };
    let forked = match (copy, truncate) {
        (true, _) => copy_goose_session(&caller, &view, transcript.first_messages(count)).await?,
        (false, true) => {
            runs::send_goose_command(caller.services(), &caller.peer, session, transcript.rewind_command(count))
                .await?;
            session
        }
        (false, false) => return Err(goose_bad_request("Must specify either truncate or copy")),
    };
    goose_json_response(json!({ "sessionId": forked }))
}

/// `POST /sessions/{id}/clear`: nothing of it is shown any more, the log keeps it.
pub(crate) async fn clear_goose_session(caller: GooseCaller, SessionInPath(session): SessionInPath) -> HandlerResult {
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    runs::send_goose_command(caller.services(), &caller.peer, session, runs::clear_history_command()).await?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    goose_json_response(Value::Object(sessions::goose_session_with_conversation(caller.services(), &view).await?))
}

/// `POST /sessions/{id}/messages`: adds a message without asking the model.
pub(crate) async fn post_session_message(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    let said: Value = read_goose_json_for_session(session, &body)?;
    let message = said.get("message").unwrap_or(&said);
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    let added = input::read_goose_conversation(std::slice::from_ref(message), &mut SystemIds);
    let added = added.map_err(|error| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let _whole = caller.state.whole_response_permit().await?;
    let transcript = sessions::load_session_transcript(caller.services(), session).await?;
    let replacement = transcript.first_messages(usize::MAX).into_iter().chain(added).collect();
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
    runs::send_goose_command(caller.services(), &caller.peer, session, reset).await?;
    goose_empty_response()
}

/// `POST /sessions/{id}/recipe`: a recipe that does what the conversation did.
pub(crate) async fn get_session_recipe(caller: GooseCaller, SessionInPath(session): SessionInPath) -> HandlerResult {
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    let made = recipes::goose_recipe_from_session(caller.services(), &caller.peer, &view, None).await?;
    let made = made.ok_or_else(|| GooseError::new(StatusCode::PRECONDITION_FAILED, "the session has no messages"))?;
    goose_json_response(recipes::session_recipe_object(&made))
}

async fn copy_goose_session(
    caller: &GooseCaller,
    view: &SessionView,
    messages: Vec<gander_domain::Message>,
) -> Result<SessionId, GooseError> {
    let services = caller.services();
    let kept = sessions::initial_session_meta(services, view.session).await?;
    let fork = Fork {
        workspace: Some(SessionFolder::Inherited(view.workspace.clone())),
        folders: view.folders.iter().cloned().map(SessionFolder::Inherited).collect(),
        messages,
        title: view.title.as_ref().map(|title| format!("{title} (copy)")),
        meta: Some(json!({ "goose": kept })),
    };
    Ok(services.sessions.fork(&caller.peer.caller, view, fork).await?.session)
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
