//! Sessions: listed, shown, renamed, copied, moved between servers.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::{Birth, Command, ResetReason, Seq, SessionId, SessionView};
use gander_wire::goose::input;
use gander_wire::goose::session::{Summary, summary};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Caller, Fault, Named, bad, empty, json_answer, read};
use crate::clock::SystemIds;
use crate::door::goose::{Book, Shelf, chat, extensions, recipes, sessions};
use crate::log::{Card, SessionQuery};
use crate::recipes::{Wish, apply};

/// Sessions in one list: more would help nobody.
const MOST: usize = 1_000;

/// `GET /sessions`.
pub(super) async fn list(caller: Caller) -> Answer {
    let cards = cards(&caller, None, MOST).await?;
    let sessions: Vec<Value> = cards.iter().map(|card| Value::Object(summary(&of(card)))).collect();
    json_answer(json!({ "sessions": sessions }))
}

/// `GET /sessions/search`: by words of the title.
pub(super) async fn search(caller: Caller, query: Result<Query<Search>, QueryRejection>) -> Answer {
    let Query(Search { query, limit, after_date, before_date }) = query.map_err(|_| bad("query is missing"))?;
    let words = query.trim();
    if words.is_empty() {
        return Err(bad("query is missing"));
    }
    let (after, before) = (time(after_date.as_deref())?, time(before_date.as_deref())?);
    let found = cards(&caller, Some(words.to_owned()), MOST).await?;
    let in_time = |card: &&Card| {
        let at = card.updated_at.micros();
        after.is_none_or(|after| at >= after) && before.is_none_or(|before| at <= before)
    };
    let limit = limit.unwrap_or(10).clamp(1, 50);
    let found = found.iter().filter(in_time).take(limit).map(|card| Value::Object(summary(&of(card))));
    json_answer(Value::Array(found.collect()))
}

#[derive(Deserialize)]
pub(super) struct Search {
    query: String,
    limit: Option<usize>,
    after_date: Option<String>,
    before_date: Option<String>,
}

/// `GET /sessions/insights`.
pub(super) async fn insights(caller: Caller) -> Answer {
    let cards = cards(&caller, None, MOST).await?;
    let mut tokens = 0;
    for card in &cards {
        let view = sessions::own(caller.desk(), &caller.peer, card.session).await?;
        tokens += view.spent.input + view.spent.output;
    }
    json_answer(json!({ "totalSessions": cards.len(), "totalTokens": tokens }))
}

/// `POST /sessions/import`.
pub(super) async fn import(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Import {
        json: String,
    }
    let view = sessions::import(caller.desk(), &caller.peer, &read::<Import>(&body)?.json).await?;
    json_answer(Value::Object(sessions::whole(caller.desk(), &view).await?))
}

/// `DELETE /sessions/{id}`.
pub(super) async fn delete(caller: Caller, Named(session): Named) -> Answer {
    sessions::own(caller.desk(), &caller.peer, session).await?;
    let deleted = caller.desk().hub.delete(session).await;
    deleted.map_err(|error| Fault::from(crate::door::acp::refusal(session, &error)))?;
    empty()
}

/// `PUT /sessions/{id}/name`.
pub(super) async fn rename(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Rename {
        name: String,
    }
    let title = sessions::title(&read::<Rename>(&body)?.name)?;
    sessions::own(caller.desk(), &caller.peer, session).await?;
    chat::command(caller.desk(), session, Command::SetTitle { title }).await?;
    empty()
}

/// `PUT /sessions/{id}/user_recipe_values`.
pub(super) async fn recipe_values(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Values {
        #[serde(alias = "user_recipe_values")]
        user_recipe_values: serde_json::Map<String, Value>,
    }
    let values = Value::Object(read::<Values>(&body)?.user_recipe_values);
    let (desk, peer) = (caller.desk(), &caller.peer);
    let view = sessions::own(desk, peer, session).await?;
    let object = sessions::object(desk, &view).await?;
    if object["recipe"].is_null() {
        return Err(Fault::new(StatusCode::NOT_FOUND, "Session has no recipe"));
    }
    let book = Book::of(&**desk.hub.store(), &peer.principal);
    let kept = json!({ "user_recipe_values": values });
    let put = book.put(Shelf::Session, &session.to_string(), kept).await;
    put.map_err(|_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the store failed"))?;
    let given = recipes::values(values.as_object().unwrap_or(&serde_json::Map::new()));
    let wish = Wish { recipe: recipes::check(&object["recipe"])?, values: given, ..Wish::default() };
    json_answer(json!({ "recipe": apply(desk, peer, &view, wish).await?.recipe }))
}

/// `GET /sessions/{id}/export`: a JSON string that holds JSON.
pub(super) async fn export(caller: Caller, Named(session): Named) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    Ok(Json(sessions::export(caller.desk(), &view).await?).into_response())
}

/// `GET /sessions/{id}/extensions`.
pub(super) async fn extensions(caller: Caller, Named(session): Named) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    json_answer(json!({ "extensions": extensions::of_session(caller.desk(), &view) }))
}

/// `POST /sessions/{id}/fork`: goes back, in this session or in a copy of it.
pub(super) async fn fork(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Fork {
        timestamp: Option<i64>,
        truncate: bool,
        copy: bool,
    }
    let Fork { timestamp, truncate, copy } = read(&body)?;
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
            chat::command(caller.desk(), session, transcript.rewind(count)).await?;
            session
        }
        (false, false) => return Err(bad("Must specify either truncate or copy")),
    };
    json_answer(json!({ "sessionId": forked }))
}

/// `POST /sessions/{id}/clear`: nothing of it is shown any more, the log keeps it.
pub(super) async fn clear(caller: Caller, Named(session): Named) -> Answer {
    sessions::own(caller.desk(), &caller.peer, session).await?;
    chat::command(caller.desk(), session, chat::cleared()).await?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    json_answer(Value::Object(sessions::whole(caller.desk(), &view).await?))
}

/// `POST /sessions/{id}/messages`: adds a message without asking the model.
pub(super) async fn add_message(caller: Caller, Named(session): Named, body: Bytes) -> Answer {
    let said: Value = read(&body)?;
    let message = said.get("message").unwrap_or(&said);
    sessions::own(caller.desk(), &caller.peer, session).await?;
    let added = input::conversation(std::slice::from_ref(message), &mut SystemIds);
    let added = added.map_err(|error| Fault::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let transcript = sessions::transcript(caller.desk(), session).await?;
    let replacement = transcript.first(usize::MAX).into_iter().chain(added).collect();
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
    chat::command(caller.desk(), session, reset).await?;
    empty()
}

/// `POST /sessions/{id}/recipe`: a recipe that begins as the conversation did.
pub(super) async fn recipe(caller: Caller, Named(session): Named) -> Answer {
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
        owner: caller.peer.principal.clone(),
        workspace: view.workspace.clone(),
        folders: view.folders.clone(),
        settings: view.settings.clone(),
        parent: Some(view.session),
        meta: Some(json!({ "goose": kept })),
    };
    let made = desk.hub.create(birth, Vec::new()).await;
    made.map_err(|error| Fault::from(crate::door::acp::refusal(session, &error)))?;
    let reset = Command::Reset { keep_to: Seq::ZERO, replacement: said, reason: ResetReason::Replaced };
    chat::command(desk, session, reset).await?;
    if let Some(title) = &view.title {
        chat::command(desk, session, Command::SetTitle { title: format!("{title} (copy)") }).await?;
    }
    Ok(session)
}

async fn cards(caller: &Caller, text: Option<String>, most: usize) -> Result<Vec<Card>, Fault> {
    let mut query = SessionQuery {
        principal: caller.peer.principal.clone(),
        workspace: None,
        text,
        archived: false,
        state: None,
        after: None,
        limit: 500,
    };
    let mut cards = Vec::new();
    loop {
        let page = caller.desk().hub.store().sessions(query.clone()).await;
        let page = page.map_err(|_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the store failed"))?;
        cards.extend(page.cards);
        query.after = page.next;
        if query.after.is_none() || cards.len() >= most {
            cards.truncate(most);
            return Ok(cards);
        }
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
