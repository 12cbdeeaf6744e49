//! Sessions: listed, shown, renamed, copied, moved between servers.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request};
use bytes::Bytes;
use gander_domain::{Birth, Command, ResetReason, Seq, SessionId, SessionView};
use gander_services::errors::unavailable;
use gander_services::recipes::{Wish, apply};
use gander_services::user_store::{Book, Shelf};
use gander_store::clock::SystemIds;
use gander_store::{Card, PageKey, SessionQuery};
use gander_wire::goose::input;
use gander_wire::goose::session::{Summary, summary};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Caller, Fault, Named, bad, empty, json_answer, limit, read, read_for};
use crate::http::json_stream::{Style, Written};
use crate::http::sse_response::Opening;
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
pub(crate) async fn list(caller: Caller, query: Result<Query<PageQuery>, QueryRejection>) -> Answer {
    let Query(PageQuery { limit: said, cursor }) = query.map_err(|error| bad(error.body_text()))?;
    let after = cursor.map(|cursor| cursor.parse::<PageKey>()).transpose().map_err(bad)?;
    let limit = match limit(said.as_deref(), MAX_PAGE)? {
        None if after.is_some() => Some(MAX_PAGE),
        limit => limit,
    };
    let mut cards = Cards::of(None, after, limit.unwrap_or(usize::MAX));
    let mut sessions = Vec::new();
    while let Some(page) = cards.next(&caller).await? {
        sessions.extend(page.iter().map(|card| Value::Object(summary(&of(card)))));
    }
    let mut answer = json!({ "sessions": sessions });
    if let Some(next) = cards.after {
        answer["next_cursor"] = json!(next.to_string());
    }
    json_answer(answer)
}

/// `GET /sessions/search`: by words of the title.
pub(crate) async fn search(caller: Caller, query: Result<Query<Search>, QueryRejection>) -> Answer {
    let Query(Search { query, limit: said, after_date, before_date }) = query.map_err(|_| bad("query is missing"))?;
    let words = query.trim();
    if words.is_empty() {
        return Err(bad("query is missing"));
    }
    let limit = limit(said.as_deref(), MAX_FOUND)?.unwrap_or(10);
    let (after, before) = (time(after_date.as_deref())?, time(before_date.as_deref())?);
    let in_time = |card: &&Card| {
        let at = card.updated_at.micros();
        after.is_none_or(|after| at >= after) && before.is_none_or(|before| at <= before)
    };
    let mut cards = Cards::of(Some(words.to_owned()), None, usize::MAX);
    let mut found = Vec::new();
    while let (true, Some(page)) = (found.len() < limit, cards.next(&caller).await?) {
        found.extend(page.iter().filter(in_time).map(|card| Value::Object(summary(&of(card)))));
    }
    found.truncate(limit);
    json_answer(Value::Array(found))
}

#[derive(Deserialize)]
pub(crate) struct Search {
    query: String,
    limit: Option<String>,
    after_date: Option<String>,
    before_date: Option<String>,
}

/// `GET /sessions/insights`.
pub(crate) async fn insights(caller: Caller) -> Answer {
    let mut cards = Cards::of(None, None, usize::MAX);
    let (mut count, mut tokens) = (0, 0);
    while let Some(page) = cards.next(&caller).await? {
        count += page.len();
        for card in page {
            let view = sessions::own(caller.desk(), &caller.peer, card.session).await?;
            tokens += view.spent.input + view.spent.output;
        }
    }
    json_answer(json!({ "totalSessions": count, "totalTokens": tokens }))
}

/// `POST /sessions/import`.
pub(crate) async fn import(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Import {
        json: String,
    }
    let view = sessions::import(caller.desk(), &caller.peer, &read::<Import>(&body)?.json).await?;
    json_answer(Value::Object(sessions::whole(caller.desk(), &view).await?))
}

/// `DELETE /sessions/{id}`.
pub(crate) async fn delete(caller: Caller, Named(session): Named) -> Answer {
    sessions::own(caller.desk(), &caller.peer, session).await?;
    let deleted = caller.desk().hub.delete(&caller.peer.caller, session).await;
    deleted.map_err(|error| Fault::from(gander_services::errors::refusal(session, &error)))?;
    empty()
}

/// `PUT /sessions/{id}/name`.
pub(crate) async fn rename(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Rename {
        name: String,
    }
    let title = sessions::title(&read_for::<Rename>(session, &body)?.name)?;
    sessions::own(caller.desk(), &caller.peer, session).await?;
    runs::command(caller.desk(), &caller.peer, session, Command::SetTitle { title }).await?;
    empty()
}

/// `PUT /sessions/{id}/user_recipe_values`.
pub(crate) async fn recipe_values(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Values {
        #[serde(alias = "user_recipe_values")]
        user_recipe_values: serde_json::Map<String, Value>,
    }
    let values = Value::Object(read_for::<Values>(session, &body)?.user_recipe_values);
    let (desk, peer) = (caller.desk(), &caller.peer);
    let view = sessions::own(desk, peer, session).await?;
    let object = sessions::object(desk, &view).await?;
    if object["recipe"].is_null() {
        return Err(Fault::new(StatusCode::NOT_FOUND, "Session has no recipe"));
    }
    let book = Book::of(&**desk.hub.store(), &peer.caller.principal);
    let kept = json!({ "user_recipe_values": values });
    let put = book.put(Shelf::Session, &session.to_string(), kept).await;
    put.map_err(|error| unavailable(&error))?;
    let given = recipes::values(values.as_object().unwrap_or(&serde_json::Map::new()));
    let wish = Wish { recipe: recipes::check(&object["recipe"])?, values: given, ..Wish::default() };
    json_answer(json!({ "recipe": apply(desk, &peer.caller, &view, wish).await?.recipe }))
}

/// `GET /sessions/{id}/export`: a JSON string that holds JSON.
pub(crate) async fn export(caller: Caller, Named(session): Named, request: Request) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let opening = Opening::new(&caller.state, &caller.identity, request.extensions());
    let opening = opening.map_err(|_| Fault::new(StatusCode::TOO_MANY_REQUESTS, "too many streams are open"))?;
    let object = sessions::object(caller.desk(), &view).await?;
    let lists = vec![("conversation", sessions::recital(caller.desk(), session).await?)];
    Ok(opening.list(Written::new(Style::File, &object, lists, Some("message_count")).stream()))
}

/// `GET /sessions/{id}/extensions`.
pub(crate) async fn extensions(caller: Caller, Named(session): Named) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    json_answer(json!({ "extensions": extensions::of_session(caller.desk(), &view) }))
}

/// `POST /sessions/{id}/fork`: goes back, in this session or in a copy of it.
pub(crate) async fn fork(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Fork {
        timestamp: Option<i64>,
        truncate: bool,
        copy: bool,
    }
    let Fork { timestamp, truncate, copy } = read_for(session, &body)?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let transcript = sessions::transcript(caller.desk(), session).await?;
    let count = match (truncate, timestamp) {
        (true, Some(second)) => transcript.before_second(second),
        (true, None) => return Err(bad("truncate needs a timestamp")),
        (false, _) => transcript.messages().len(),
    };
    let forked = match (copy, truncate) {
        (true, _) => copied(&caller, &view, transcript.first(count)).await?,
        (false, true) => {
            runs::command(caller.desk(), &caller.peer, session, transcript.rewind(count)).await?;
            session
        }
        (false, false) => return Err(bad("Must specify either truncate or copy")),
    };
    json_answer(json!({ "sessionId": forked }))
}

/// `POST /sessions/{id}/clear`: nothing of it is shown any more, the log keeps it.
pub(crate) async fn clear(caller: Caller, Named(session): Named) -> Answer {
    sessions::own(caller.desk(), &caller.peer, session).await?;
    runs::command(caller.desk(), &caller.peer, session, runs::cleared()).await?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    json_answer(Value::Object(sessions::whole(caller.desk(), &view).await?))
}

/// `POST /sessions/{id}/messages`: adds a message without asking the model.
pub(crate) async fn add_message(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    let said: Value = read_for(session, &body)?;
    let message = said.get("message").unwrap_or(&said);
    sessions::own(caller.desk(), &caller.peer, session).await?;
    let added = input::conversation(std::slice::from_ref(message), &mut SystemIds);
    let added = added.map_err(|error| Fault::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let transcript = sessions::transcript(caller.desk(), session).await?;
    let replacement = transcript.first(usize::MAX).into_iter().chain(added).collect();
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
    runs::command(caller.desk(), &caller.peer, session, reset).await?;
    empty()
}

/// `POST /sessions/{id}/recipe`: a recipe that begins as the conversation did.
pub(crate) async fn recipe(caller: Caller, Named(session): Named) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let recipe = recipes::of_session(caller.desk(), &view, None).await?;
    let recipe = recipe.ok_or_else(|| Fault::new(StatusCode::PRECONDITION_FAILED, "the session has no messages"))?;
    json_answer(json!({ "recipe": recipe, "error": null }))
}

async fn copied(caller: &Caller, view: &SessionView, said: Vec<gander_domain::Message>) -> Result<SessionId, Fault> {
    let desk = caller.desk();
    let session = SessionId::make(&mut SystemIds);
    let kept = sessions::born_with(desk, view.session).await?;
    let birth = Birth {
        session,
        owner: caller.peer.caller.principal.clone(),
        workspace: view.workspace.clone(),
        folders: view.folders.clone(),
        settings: caller.peer.caller.inherited_settings(desk.settings.policy, view.settings.clone()),
        parent: Some(view.session),
        meta: Some(json!({ "goose": kept })),
    };
    let made = desk.hub.create(&caller.peer.caller, birth, Vec::new()).await;
    made.map_err(|error| Fault::from(gander_services::errors::refusal(session, &error)))?;
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement: said, reason: ResetReason::Replaced };
    runs::command(desk, &caller.peer, session, reset).await?;
    if let Some(title) = &view.title {
        runs::command(desk, &caller.peer, session, Command::SetTitle { title: format!("{title} (copy)") }).await?;
    }
    Ok(session)
}

/// Sessions as they are read from the store, a page at a time.
struct Cards {
    text: Option<String>,
    /// Where the next page begins; none before the first and after the last.
    after: Option<PageKey>,
    wanted: usize,
    over: bool,
}

impl Cards {
    fn of(text: Option<String>, after: Option<PageKey>, wanted: usize) -> Self {
        Self { text, after, wanted, over: false }
    }

    async fn next(&mut self, caller: &Caller) -> Result<Option<Vec<Card>>, Fault> {
        if self.over || self.wanted == 0 {
            return Ok(None);
        }
        let query = SessionQuery {
            principal: caller.peer.caller.principal.clone(),
            workspace: None,
            text: self.text.clone(),
            archived: false,
            state: None,
            after: self.after,
            limit: u32::try_from(self.wanted).unwrap_or(u32::MAX).min(STORE_PAGE),
        };
        let page = caller.desk().hub.store().sessions(query).await;
        let page = page.map_err(|error| unavailable(&error))?;
        self.wanted -= page.cards.len().min(self.wanted);
        (self.over, self.after) = (page.next.is_none(), page.next);
        Ok(Some(page.cards))
    }
}

fn of(card: &Card) -> Summary<'_> {
    Summary {
        session: card.session,
        workspace: &card.workspace,
        title: Some(card.title.as_str()).filter(|title| !title.is_empty()),
        created_at: card.created_at,
        updated_at: card.updated_at,
        archived: card.archived,
        messages: card.messages,
    }
}

fn time(text: Option<&str>) -> Result<Option<i64>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let at: jiff::Timestamp =
        text.parse().map_err(|_| Fault::new(StatusCode::UNPROCESSABLE_ENTITY, format!("not a date: {text}")))?;
    Ok(Some(at.as_microsecond()))
}
