//! Sessions: shown, renamed, copied, moved between servers.

use axum::extract::Request;
use bytes::Bytes;
use gander_domain::{Command, ResetReason, Seq, SessionId, SessionView};
use gander_http::sse_response::SsePermit;
use gander_services::apply_recipe::{ApplyRecipe, apply_recipe};
use gander_services::errors::service_error_from_store;
use gander_services::sessions::{Fork, SessionFolder};
use gander_services::user_store::{Collection, UserStore};
use gander_store::clock::SystemIds;
use gander_wire::goose::requests;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    GooseCaller, HandlerResult, SessionInPath, goose_empty_response, goose_json_response, read_goose_json,
    read_goose_json_for_session,
};
use crate::json_stream::{JsonStream, JsonStyle};
use crate::protocols::goose::error::{GooseError, goose_bad_request};
use crate::protocols::goose::{extensions, recipes, runs, sessions};

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
    runs::send_goose_command(caller.services(), &caller.peer, session, runs::goose_clear_history_command()).await?;
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
    let added = requests::read_goose_conversation(std::slice::from_ref(message), &mut SystemIds);
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
