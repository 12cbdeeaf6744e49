//! `GET /acp` with `Upgrade: websocket`: the handshake, and what follows it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use uuid::Uuid;

use super::CONNECTION_ID;
use crate::door::acp::{self, Ending, Manner};
use crate::http::accept::Seat;
use crate::http::error::problem;
use crate::http::site::Site;
use crate::http::sse::Opening;
use crate::token::Identity;

/// True if the caller wants a WebSocket.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    lists(headers, header::UPGRADE, "websocket")
}

/// Answers the handshake; the connection is served once the answer is out.
pub(super) fn open(
    site: &Arc<Site>,
    identity: Identity,
    opening: Opening,
    manner: Manner,
    mut request: Request,
) -> Response {
    let accept = match handshake(&request) {
        Ok(accept) => accept,
        Err(refusal) => return *refusal,
    };
    let (Some(upgrade), Some(seat)) =
        (request.extensions_mut().remove::<OnUpgrade>(), request.extensions_mut().remove::<Arc<Seat>>())
    else {
        return problem(StatusCode::BAD_REQUEST, "no_upgrade", "this connection cannot become a WebSocket");
    };
    let ending = Ending { soon: site.ending.clone(), now: seat.stop.clone() };
    let desk = Arc::clone(site.app.desk());
    seat.tasks.clone().spawn(async move {
        match upgrade.await {
            Ok(upgraded) => acp::serve_websocket(desk, TokioIo::new(upgraded), &identity, manner, ending).await,
            Err(error) => tracing::debug!(%error, "no WebSocket after all"),
        }
        drop((seat, opening));
    });
    switching(&accept)
}

fn switching(accept: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.clone());
    if let Ok(id) = HeaderValue::try_from(Uuid::now_v7().to_string()) {
        headers.insert(CONNECTION_ID, id);
    }
    response
}

/// The value of `Sec-WebSocket-Accept`, or what is wrong. Extensions are not spoken, so none is agreed on.
fn handshake(request: &Request) -> Result<HeaderValue, Box<Response>> {
    let headers = request.headers();
    let bad = |message| Err(Box::new(problem(StatusCode::BAD_REQUEST, "bad_handshake", message)));
    if request.version() != Version::HTTP_11 || !lists(headers, header::CONNECTION, "upgrade") {
        return bad("a WebSocket begins with Connection: Upgrade on HTTP/1.1");
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut response = problem(StatusCode::UPGRADE_REQUIRED, "bad_version", "only WebSocket version 13 is spoken");
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(response));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| acp::accept_key(key.to_str().ok()?));
    match key.and_then(|accept| HeaderValue::try_from(accept).ok()) {
        Some(accept) => Ok(accept),
        None => bad("Sec-WebSocket-Key is missing or wrong"),
    }
}

/// True if a header lists this word.
fn lists(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|listed| {
        let listed = listed.trim();
        listed.eq_ignore_ascii_case(word)
    })
}
