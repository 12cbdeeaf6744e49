//! Both ways to chat: a stream in the answer, or a session that is listened to.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use gander_domain::{IfBusy, RunId, Seq, ServiceError, SessionId, SessionView};
use gander_http::accept_header::accepts_any_of;
use gander_http::sse::{EventId, SseStream, StreamPosition};
use gander_http::sse_response::{SsePermit, last_event_id};
use gander_services::errors::service_error_from_hub;
use gander_store::clock::SystemIds;
use gander_store::{DeltaForm, Limit};
use gander_wire::goose::{projection, requests};
use http::header::HeaderMap;
use http::{Extensions, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    GooseCaller, HandlerResult, SessionInPath, goose_empty_response, goose_json_response, read_goose_answer_json,
    read_goose_json, read_goose_json_for_session,
};
use crate::protocols::goose::error::{GooseError, goose_bad_request, no_such_goose_session};
use crate::protocols::goose::runs::{self, GooseRunError, PromptOutcome, PromptRequest};
use crate::protocols::goose::session_events::SessionEvents;
use crate::protocols::goose::sessions;
use crate::protocols::goose::stream::{ReplyStream, goose_stream_frame};

/// A prompt: `messages` until 1.17, then a message and at times a history under two names.
#[derive(Deserialize)]
struct ChatRequest {
    session_id: Option<String>,
    user_message: Option<Value>,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(alias = "conversation_so_far")]
    override_conversation: Option<Vec<Value>>,
    mode: Option<String>,
}

#[derive(Deserialize)]
struct SessionReply {
    request_id: String,
    user_message: Value,
    override_conversation: Option<Vec<Value>>,
}

/// `/reply`: errors of the session are events too, as goosed had it.
pub(crate) async fn post_reply(caller: GooseCaller, parts: StreamParts, body: Bytes) -> HandlerResult {
    let request: ChatRequest = read_goose_json(&body)?;
    let permit = run_sse_permit(&caller, &parts)?;
    let (message, history) = request.split_prompt()?;
    let Some(session) = request.session_id.as_deref().and_then(|id| id.parse().ok()) else {
        return Ok(run_single_batch_response(permit, &[run_no_such_session_event()]));
    };
    let run = RunId::make(&mut SystemIds);
    let request =
        PromptRequest { session, run, message, history, mode: request.mode, if_busy: IfBusy::QueueOrSupersede };
    match runs::begin_goose_run(caller.services(), &caller.peer, request).await {
        Ok(PromptOutcome::Begun { view, .. }) => {
            let listening = ReplyStream::new(caller.services(), &caller.peer, *view, run, permit.stop_token());
            Ok(permit.sse_response(listening.into_events()))
        }
        Ok(PromptOutcome::Done) => run_conversation_response(&caller, permit, session).await,
        Err(GooseRunError::Refused(ServiceError::UnknownSession(_))) => {
            Ok(run_single_batch_response(permit, &[run_no_such_session_event()]))
        }
        Err(wrong) => Err(wrong.into()),
    }
}

/// `/sessions/{id}/reply`: accepted at once, told on the session's own stream. One request at a time.
pub(crate) async fn post_session_reply(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    let SessionReply { request_id, user_message, override_conversation } = read_goose_json_for_session(session, &body)?;
    let run: RunId = request_id.parse().map_err(|_| goose_bad_request("request_id must be a valid UUID"))?;
    let (message, history) = (user_message, override_conversation);
    let request = PromptRequest { session, run, message, history, mode: None, if_busy: IfBusy::Refuse };
    match runs::begin_goose_run_once(caller.services(), &caller.peer, request).await {
        Ok(PromptOutcome::Begun { .. } | PromptOutcome::Done) => goose_json_response(json!({ "request_id": run })),
        Err(GooseRunError::Refused(ServiceError::Command(command))) => Err(goose_bad_request(command.to_string())),
        Err(wrong) => Err(wrong.into()),
    }
}

/// `/sessions/{id}/events`: from the last run on, or after what the client has.
pub(crate) async fn get_session_run_events(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    headers: HeaderMap,
    parts: StreamParts,
) -> HandlerResult {
    let services = caller.services();
    let now = sessions::find_own_goose_session(services, &caller.peer, session).await?;
    let permit = run_sse_permit(&caller, &parts)?;
    let store = services.hub.store();
    let (from, seen) = match last_event_id(&headers) {
        Ok(None) => (seq_before_last_run(&caller, &now).await?, StreamPosition::default()),
        Ok(Some(EventId { incarnation, position }))
            if incarnation == store.incarnation() && position.seq <= now.head.0 =>
        {
            (resume_run_after(&caller, session, position).await?, position)
        }
        Ok(Some(_)) => {
            return Err(GooseError::new(StatusCode::CONFLICT, "Client too far behind — reload conversation"));
        }
        Err(_) => return Err(goose_bad_request("Last-Event-ID is not an id of this stream")),
    };
    let view = services.hub.view_at(session, from).await.map_err(|error| service_error_from_hub(session, &error))?;
    let follow = SseStream {
        follower: services.hub.follow_session(session, from, DeltaForm::Joined),
        projection: SessionEvents {
            active: now.run.as_ref().map(|run| run.id),
            view,
            store: Arc::clone(store),
            transcript: None,
        },
        seen,
        incarnation: store.incarnation(),
        stop: permit.stop_token(),
    };
    let presence = services.clients.attach(session, &crate::protocols::goose::CLIENT_NAME.into());
    let events = futures::StreamExt::inspect(follow.into_events(), move |_| {
        let _here = &presence;
    });
    Ok(permit.sse_response(events))
}

/// `/sessions/{id}/cancel`.
pub(crate) async fn post_run_cancel(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    #[derive(Deserialize)]
    struct Cancel {
        request_id: String,
    }
    let Cancel { request_id } = read_goose_json_for_session(session, &body)?;
    let run: RunId = request_id.parse().map_err(|_| goose_bad_request("request_id must be a valid UUID"))?;
    runs::cancel_goose_run(caller.services(), &caller.peer, session, Some(run)).await?;
    goose_empty_response()
}

/// `/action-required/tool-confirmation`, and `/confirm` as it was before 1.16.
pub(crate) async fn post_run_confirm(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Confirm {
        #[serde(alias = "request_id")]
        id: String,
        #[serde(alias = "sessionId")]
        session_id: Option<String>,
        action: Option<String>,
        #[serde(alias = "confirmed")]
        approved: Option<bool>,
    }
    let Confirm { id, session_id, action, approved } = read_goose_answer_json(&body)?;
    let once = || approved.map(|yes| if yes { "allow_once" } else { "deny_once" }.to_owned());
    let action = action.or_else(once).ok_or_else(|| goose_bad_request("action is missing"))?;
    let session = match session_id {
        Some(session) => session.parse().map_err(|_| no_such_goose_session())?,
        None => session_of_run_question(&caller, &id).await?,
    };
    runs::confirm_goose_tool(caller.services(), &caller.peer, session, &id, &action).await?;
    goose_json_response(json!({}))
}

impl ChatRequest {
    fn split_prompt(&self) -> Result<(Value, Option<Vec<Value>>), GooseError> {
        let unprocessable = |text: &str| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, text);
        if let Some(message) = &self.user_message {
            return Ok((message.clone(), self.override_conversation.clone()));
        }
        let unknown = self.messages.iter().find_map(|message| requests::read_goose_role(message).err());
        if let Some(error) = unknown {
            return Err(unprocessable(&error.to_string()));
        }
        let (last, earlier) =
            self.messages.split_last().ok_or_else(|| unprocessable("missing field `user_message`"))?;
        // Until 1.17 clients sent all they had: the server's own history is the same and stays.
        let history = self.override_conversation.clone();
        Ok((last.clone(), history.or_else(|| self.session_id.is_none().then(|| earlier.to_vec()))))
    }
}

/// The parts of a request that streams need.
pub(crate) struct StreamParts {
    extensions: Extensions,
    accepts: bool,
}

impl<S: Sync> axum::extract::FromRequestParts<S> for StreamParts {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        let ranges = ["text/event-stream", "text/*", "*/*", "application/json"];
        Ok(Self { extensions: parts.extensions.clone(), accepts: accepts_any_of(&parts.headers, &ranges) })
    }
}

fn run_sse_permit(caller: &GooseCaller, parts: &StreamParts) -> Result<SsePermit, GooseError> {
    let StreamParts { extensions, accepts } = parts;
    if !accepts {
        return Err(GooseError::new(StatusCode::NOT_ACCEPTABLE, "this is a stream of events"));
    }
    let opened = SsePermit::new(&caller.state, &caller.identity, extensions);
    opened.map_err(|_| GooseError::new(StatusCode::TOO_MANY_REQUESTS, "too many streams are open"))
}

fn run_no_such_session_event() -> Value {
    projection::goose_error_event("Failed to read session: Session not found")
}

/// A stream of what is known already.
fn run_single_batch_response(permit: SsePermit, events: &[Value]) -> Response {
    permit.sse_response(stream::iter([Ok(goose_stream_frame(events))]))
}

/// A prompt that was an answer or a command: the conversation as it is now.
async fn run_conversation_response(caller: &GooseCaller, permit: SsePermit, session: SessionId) -> HandlerResult {
    let services = caller.services();
    let view = sessions::find_own_goose_session(services, &caller.peer, session).await?;
    let _whole = caller.state.whole_response_permit().await?;
    let messages = sessions::load_session_transcript(services, session).await?.all_messages();
    let spent = gander_wire::goose::TokenState::from_view(&view);
    let finish = json!({ "type": "Finish", "reason": "stop", "token_state": spent.to_json() });
    Ok(run_single_batch_response(permit, &[projection::goose_conversation_event(messages), finish]))
}

/// Where to read on. A piece of a message is one event; any other entry is read again, for those after this one.
async fn resume_run_after(
    caller: &GooseCaller,
    session: SessionId,
    position: StreamPosition,
) -> Result<Seq, GooseError> {
    let before = Seq(position.seq.saturating_sub(1));
    let one = Limit { entries: 1, ..Limit::default() };
    let entries = caller.services().hub.store().read(session, before, one, DeltaForm::Exact).await;
    let entries = entries.map_err(|error| service_error_from_hub(session, &error.into()))?;
    let grown = entries.first().is_none_or(|entry| entry.event.is_delta());
    Ok(if grown { Seq(position.seq) } else { before })
}

/// The place before the run that is under way, or before the last one.
async fn seq_before_last_run(caller: &GooseCaller, view: &SessionView) -> Result<Seq, GooseError> {
    let last = match (&view.run, view.ended.last()) {
        (Some(active), _) => return Ok(Seq(active.from.0.saturating_sub(1))),
        (None, Some((run, _))) => *run,
        (None, None) => return Ok(view.head),
    };
    let row = caller.services().sessions.find_run(&caller.peer.caller, last).await?;
    Ok(row.map_or(view.head, |row| Seq(row.first.0.saturating_sub(1))))
}

/// The session of a question whose asker did not say it.
async fn session_of_run_question(caller: &GooseCaller, id: &str) -> Result<SessionId, GooseError> {
    let nobody = || GooseError::new(StatusCode::NOT_FOUND, "nothing waits for an answer under this id");
    let question = id.parse().map_err(|_| nobody())?;
    let row = caller.services().sessions.find_question(&caller.peer.caller, question).await?;
    Ok(row.ok_or_else(nobody)?.session)
}
