//! `GET /run_live`: a WebSocket on which turns in words are said, and every event is a frame.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use gander_domain::caller::Caller;
use gander_http::sse_response::SsePermit;
use gander_http::websocket::{CloseCode, SocketEvent, WebSocket};
use gander_http::websocket_upgrade::{self, WebSocketUpgrade};
use gander_wire::adk::live::{LiveFrame, LiveInput};
use gander_wire::adk::requests::SessionAddress;
use gander_wire::adk::{AdkEvent, AdkRefusal, AdkRunRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::HandlerResult;
use crate::protocols::adk::AdkState;
use crate::protocols::adk::stream;
use crate::protocols::adk::{AdkRunSubscription, AppUser, BeginOutcome};

type QueryPairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// `GET /run_live`.
pub(crate) async fn open_live_connection(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    query: QueryPairs,
    request: Request,
) -> HandlerResult {
    if !websocket_upgrade::wants_websocket(request.headers()) {
        return Err(AdkRefusal::new(426, "this is a WebSocket: send Upgrade: websocket").into());
    }
    let Query(query) = query.map_err(|_| AdkRefusal::new(403, "the address of the WebSocket cannot be read"))?;
    let live = LiveInput::from_query(&query, state.limits.prompt_body.len())?;
    match state.adk.find_app(&live.address().app) {
        Err(refusal) if refusal.status == 403 => return Err(refusal.into()),
        Ok(_) | Err(_) => {} // said over the WebSocket, as the original does
    }
    let permit = SsePermit::new(&state, &caller, request.extensions())?;
    let handshake = WebSocketUpgrade::from_request(permit, request)?;
    let stop = handshake.stop_token();
    Ok(handshake.accept(move |stream| async move {
        let socket = WebSocket::new(stream);
        LiveConnection { state, caller, live, turns: VecDeque::new(), closing: false }.run(socket, stop).await;
    }))
}

/// One live connection. What it began goes on without it, unless the settings say otherwise.
struct LiveConnection {
    state: Arc<AdkState>,
    caller: Caller,
    live: LiveInput,
    /// Turns that are told in the order in which they were said. The session's own queue bounds them.
    turns: VecDeque<AdkRunSubscription>,
    /// The client said its last word.
    closing: bool,
}

/// Why a connection ends.
struct LiveClose(CloseCode, String);

impl LiveConnection {
    async fn run<S: AsyncRead + AsyncWrite + Unpin + Send>(
        mut self,
        mut socket: WebSocket<S>,
        stop: CancellationToken,
    ) {
        let ended = match self.check_session().await {
            Ok(()) => self.run_loop(&mut socket, stop).await,
            Err(refusal) => Some(LiveClose::from(refusal)),
        };
        if let Some(LiveClose(why, reason)) = ended {
            socket.close(why, &reason).await;
        }
    }

    /// True if there is such a session.
    async fn check_session(&self) -> Result<(), AdkRefusal> {
        let SessionAddress { app, user, session } = self.live.address().clone();
        self.state.adk.find_app(&app)?;
        self.state.adk.find_session(&self.caller, AppUser { app, user }, &session).await.map(drop)
    }

    /// Until one side ends it; `None` if the client is gone already.
    async fn run_loop<S>(&mut self, socket: &mut WebSocket<S>, stop: CancellationToken) -> Option<LiveClose>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let ending = self.state.ending.clone();
        loop {
            let (waits, can_tell) = (self.turns.is_empty(), socket.is_flushed());
            if self.closing && waits && can_tell {
                return Some(LiveClose(CloseCode::Normal, String::new()));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Some(LiveClose(CloseCode::Restart, String::new())),
                () = ending.cancelled(), if waits => return Some(LiveClose(CloseCode::Restart, String::new())),
                told = next_live_events(&mut self.turns), if !waits && can_tell => match told {
                    Ok(events) => events.iter().for_each(|event| send_live_event(socket, event)),
                    Err(refusal) => return Some(refusal.into()),
                },
                step = socket.next_event() => match step? {
                    SocketEvent::Message(frame) => {
                        if let Err(refusal) = self.handle_frame(&frame).await {
                            return Some(refusal.into());
                        }
                        // Messages count like requests: whoever sends too many waits, and its bytes with it.
                        let wait = self.state.quotas.charge_message(&self.caller, Instant::now());
                        tokio::select! {
                            () = tokio::time::sleep(wait) => {}
                            () = stop.cancelled() => {}
                        }
                    }
                    SocketEvent::Written => {}
                }
            }
        }
    }

    async fn handle_frame(&mut self, frame: &[u8]) -> Result<(), AdkRefusal> {
        if self.closing {
            return Ok(());
        }
        let LiveFrame { state_delta, run, close } = self.live.handle_frame(frame)?;
        if !state_delta.is_empty() {
            let SessionAddress { app, user, session } = self.live.address().clone();
            self.state.adk.patch_state(&self.caller, AppUser { app, user }, &session, state_delta).await?;
        }
        if let Some(run) = run {
            self.begin_run(*run).await?;
        }
        self.closing = close;
        Ok(())
    }

    async fn begin_run(&mut self, run: AdkRunRequest) -> Result<(), AdkRefusal> {
        match self.state.adk.begin_run(&self.caller, run).await? {
            BeginOutcome::Watching(subscription) => self.turns.push_back(*subscription),
            BeginOutcome::Nothing => {}
            BeginOutcome::Unknown(id) => return Err(AdkRefusal::new(400, stream::stream_unknown_question_text(&id))),
        }
        Ok(())
    }
}

impl From<AdkRefusal> for LiveClose {
    fn from(refusal: AdkRefusal) -> Self {
        let why = match refusal.status {
            404 => CloseCode::Protocol, // what the original says of a session that is not there
            403 => CloseCode::Policy,
            413 => CloseCode::TooLarge,
            400 | 422 => CloseCode::NotUtf8,
            _ => CloseCode::Failed,
        };
        Self(why, refusal.error)
    }
}

/// What the oldest turn tells next.
async fn next_live_events(turns: &mut VecDeque<AdkRunSubscription>) -> Result<Vec<AdkEvent>, AdkRefusal> {
    let Some(turn) = turns.front_mut() else { return Ok(Vec::new()) };
    let events = turn.next_events().await?;
    if turn.is_complete() {
        turns.pop_front();
    }
    Ok(events.unwrap_or_default())
}

fn send_live_event<S: AsyncRead + AsyncWrite + Unpin + Send>(socket: &mut WebSocket<S>, event: &AdkEvent) {
    let json = serde_json::to_vec(event).expect("wire types are made of what JSON can say");
    socket.send_text(&json);
}
