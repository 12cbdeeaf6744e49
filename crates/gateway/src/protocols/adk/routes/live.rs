//! `GET /run_live`: a WebSocket on which turns in words are said, and every event is a frame.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use gander_domain::caller::Caller;
use gander_wire::adk::input::Address;
use gander_wire::adk::live::{Heard, Live};
use gander_wire::adk::{Event, Refusal, RunRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::Answer;
use crate::http::sse_response::Opening;
use crate::http::websocket_upgrade::{self, Handshake};
use crate::protocols::adk::AdkState;
use crate::protocols::adk::stream;
use crate::protocols::adk::{Begun, Place, Watched};
use crate::websocket::{Close, Socket, Step};

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// `GET /run_live`.
pub(crate) async fn open(
    State(state): State<Arc<AdkState>>,
    Extension(identity): Extension<Caller>,
    query: Pairs,
    request: Request,
) -> Answer {
    if !websocket_upgrade::is_wanted(request.headers()) {
        return Err(Refusal::new(426, "this is a WebSocket: send Upgrade: websocket").into());
    }
    let Query(query) = query.map_err(|_| Refusal::new(403, "the address of the WebSocket cannot be read"))?;
    let live = Live::read(&query, state.limits.prompt_body.len())?;
    match state.adk.app(&live.address().app) {
        Err(refusal) if refusal.status == 403 => return Err(refusal.into()),
        Ok(_) | Err(_) => {} // said over the WebSocket, as the original does
    }
    let opening = Opening::new(&state, &identity, request.extensions())?;
    let handshake = Handshake::read(opening, request)?;
    let stop = handshake.stop();
    Ok(handshake.open(move |stream| async move {
        let socket = Socket::new(stream);
        Talk { state, identity, live, turns: VecDeque::new(), closing: false }.hold(socket, stop).await;
    }))
}

/// One live connection. What it began goes on without it, unless the settings say otherwise.
struct Talk {
    state: Arc<AdkState>,
    identity: Caller,
    live: Live,
    /// Turns that are told in the order in which they were said. The session's own queue bounds them.
    turns: VecDeque<Watched>,
    /// The client said its last word.
    closing: bool,
}

/// Why a connection ends.
struct End(Close, String);

impl Talk {
    async fn hold<S: AsyncRead + AsyncWrite + Unpin + Send>(mut self, mut socket: Socket<S>, stop: CancellationToken) {
        let ended = match self.is_there().await {
            Ok(()) => self.talk(&mut socket, stop).await,
            Err(refusal) => Some(End::from(refusal)),
        };
        if let Some(End(why, reason)) = ended {
            socket.close(why, &reason).await;
        }
    }

    /// True if there is such a session.
    async fn is_there(&self) -> Result<(), Refusal> {
        let Address { app, user, session } = self.live.address().clone();
        self.state.adk.app(&app)?;
        self.state.adk.find(&self.identity, Place { app, user }, &session).await.map(drop)
    }

    /// Until one side ends it; `None` if the client is gone already.
    async fn talk<S>(&mut self, socket: &mut Socket<S>, stop: CancellationToken) -> Option<End>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let ending = self.state.ending.clone();
        loop {
            let (waits, can_tell) = (self.turns.is_empty(), socket.is_idle());
            if self.closing && waits && can_tell {
                return Some(End(Close::Normal, String::new()));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Some(End(Close::Restart, String::new())),
                () = ending.cancelled(), if waits => return Some(End(Close::Restart, String::new())),
                told = told(&mut self.turns), if !waits && can_tell => match told {
                    Ok(events) => events.iter().for_each(|event| say(socket, event)),
                    Err(refusal) => return Some(refusal.into()),
                },
                step = socket.next() => match step? {
                    Step::Message(frame) => {
                        if let Err(refusal) = self.hear(&frame).await {
                            return Some(refusal.into());
                        }
                        // Messages count like requests: whoever sends too many waits, and its bytes with it.
                        let wait = self.state.quotas.charge(&self.identity, Instant::now());
                        tokio::select! {
                            () = tokio::time::sleep(wait) => {}
                            () = stop.cancelled() => {}
                        }
                    }
                    Step::Written => {}
                }
            }
        }
    }

    async fn hear(&mut self, frame: &[u8]) -> Result<(), Refusal> {
        if self.closing {
            return Ok(());
        }
        let Heard { state_delta, run, close } = self.live.hear(frame)?;
        if !state_delta.is_empty() {
            let Address { app, user, session } = self.live.address().clone();
            self.state.adk.patch(&self.identity, Place { app, user }, &session, state_delta).await?;
        }
        if let Some(run) = run {
            self.begin(*run).await?;
        }
        self.closing = close;
        Ok(())
    }

    async fn begin(&mut self, run: RunRequest) -> Result<(), Refusal> {
        match self.state.adk.begin(&self.identity, run).await? {
            Begun::Watching(watched) => self.turns.push_back(*watched),
            Begun::Nothing => {}
            Begun::Unknown(id) => return Err(Refusal::new(400, stream::unknown(&id))),
        }
        Ok(())
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        let why = match refusal.status {
            404 => Close::Protocol, // what the original says of a session that is not there
            403 => Close::Policy,
            413 => Close::TooLarge,
            400 | 422 => Close::NotUtf8,
            _ => Close::Failed,
        };
        Self(why, refusal.error)
    }
}

/// What the oldest turn tells next.
async fn told(turns: &mut VecDeque<Watched>) -> Result<Vec<Event>, Refusal> {
    let Some(turn) = turns.front_mut() else { return Ok(Vec::new()) };
    let events = turn.next().await?;
    if turn.is_over() {
        turns.pop_front();
    }
    Ok(events.unwrap_or_default())
}

fn say<S: AsyncRead + AsyncWrite + Unpin + Send>(socket: &mut Socket<S>, event: &Event) {
    let json = serde_json::to_vec(event).expect("wire types are made of what JSON can say");
    socket.say(&json);
}
