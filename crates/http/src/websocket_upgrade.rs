//! `Upgrade: websocket`: the handshake, for every protocol that goes on over one.

use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

use crate::error::problem_response;
use crate::revocation::Revoked;
use crate::serve::ConnectionPermit;
use crate::sse_response::SsePermit;
use crate::subprotocols::chosen_subprotocol;
use crate::websocket::websocket_accept_key;

/// True if the caller wants a WebSocket.
pub fn wants_websocket(headers: &HeaderMap) -> bool {
    upgrade_header_contains_token(headers, header::UPGRADE, "websocket")
}

/// A handshake that is as it should be. What it takes up is given back when the connection is over.
pub struct WebSocketUpgrade {
    accept: HeaderValue,
    subprotocol: Option<HeaderValue>,
    upgrade: OnUpgrade,
    seat: Arc<ConnectionPermit>,
    permit: SsePermit,
    /// Of a browser: what ends it from outside.
    revoked: Option<Revoked>,
}

impl WebSocketUpgrade {
    /// Reads what the caller sent, or says what is wrong with it.
    pub fn from_request(permit: SsePermit, mut request: Request) -> Result<Self, Box<Response>> {
        let accept = check_websocket_handshake(&request)?;
        let subprotocol = chosen_subprotocol(request.headers());
        let revoked = request.extensions().get::<Revoked>().cloned();
        let extensions = request.extensions_mut();
        let (Some(upgrade), Some(seat)) =
            (extensions.remove::<OnUpgrade>(), extensions.remove::<Arc<ConnectionPermit>>())
        else {
            let refusal =
                problem_response(StatusCode::BAD_REQUEST, "no_upgrade", "this connection cannot become a WebSocket");
            return Err(Box::new(refusal));
        };
        Ok(Self { accept, subprotocol, upgrade, seat, permit, revoked })
    }

    /// Cancelled when the connections end.
    pub fn stop_token(&self) -> CancellationToken {
        self.seat.stop.clone()
    }

    /// Answers; the connection is served once the answer is out.
    pub fn accept<F, S>(self, serve: F) -> Response
    where
        F: FnOnce(TokioIo<Upgraded>) -> S + Send + 'static,
        S: Future<Output = ()> + Send,
    {
        let Self { accept, subprotocol, upgrade, seat, permit, revoked } = self;
        let revoked = revoked.map_or_else(CancellationToken::new, |Revoked(revoked)| revoked);
        seat.tasks.clone().spawn(async move {
            match upgrade.await {
                Ok(upgraded) => tokio::select! {
                    () = revoked.cancelled() => tracing::debug!("a browser's WebSocket was revoked"),
                    () = serve(TokioIo::new(upgraded)) => {}
                },
                Err(error) => tracing::debug!(%error, "no WebSocket after all"),
            }
            drop((seat, permit));
        });
        websocket_upgrade_response(accept, subprotocol)
    }
}

fn websocket_upgrade_response(accept: HeaderValue, subprotocol: Option<HeaderValue>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(subprotocol) = subprotocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    response
}

/// The value of `Sec-WebSocket-Accept`, or what is wrong. Extensions are not spoken, so none is agreed on.
fn check_websocket_handshake(request: &Request) -> Result<HeaderValue, Box<Response>> {
    let headers = request.headers();
    let bad = |message| Err(Box::new(problem_response(StatusCode::BAD_REQUEST, "bad_handshake", message)));
    if request.version() != Version::HTTP_11 || !upgrade_header_contains_token(headers, header::CONNECTION, "upgrade") {
        return bad("a WebSocket begins with Connection: Upgrade on HTTP/1.1");
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut response =
            problem_response(StatusCode::UPGRADE_REQUIRED, "bad_version", "only WebSocket version 13 is spoken");
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(response));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| websocket_accept_key(key.to_str().ok()?));
    match key.and_then(|accept| HeaderValue::try_from(accept).ok()) {
        Some(accept) => Ok(accept),
        None => bad("Sec-WebSocket-Key is missing or wrong"),
    }
}

/// True if a header lists this word.
pub(crate) fn upgrade_header_contains_token(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|listed| {
        let listed = listed.trim();
        listed.eq_ignore_ascii_case(word)
    })
}
