//! Browsers: tickets for tokens, cookies for tickets, and which requests a cookie or ticket counts for.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use gander_services::browser_access::{BrowserCredential, BrowserSecrets, COOKIE_TTL, PHONE_TICKET_TTL, TICKET_TTL};
use gander_services::token::TokenId;
use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::connection_addresses::ConnectionAddresses;
use crate::error::problem_response;
use crate::origin_check::{is_same_origin, request_authority, request_base_url};
use crate::peer_user::is_from_another_user;
use crate::request_token::request_token;
use crate::state::HttpState;
use crate::subprotocols::{PAGE_KEY_SUBPROTOCOL, TICKET_SUBPROTOCOL, subprotocols};
use crate::websocket_upgrade::{upgrade_header_contains_token, wants_websocket};

/// Where it puts it into any other request.
const PAGE_KEY_HEADER: HeaderName = HeaderName::from_static("x-gander-page-key");

/// What a browser proves itself with.
pub enum BrowserProof {
    Ticket(String),
    Cookie(BrowserSecrets),
}

/// What the browser that makes a request shows: a ticket where nothing else can be sent, else its cookie.
pub fn browser_proof(request: &Request) -> Option<BrowserProof> {
    if is_from_another_user(&ConnectionAddresses::of_request(request)) {
        return None;
    }
    if let Some(ticket) = presented_browser_ticket(request) {
        return Some(BrowserProof::Ticket(ticket));
    }
    let headers = request.headers();
    let cookie = browser_cookie(headers, &browser_cookie_name(&ConnectionAddresses::of_request(request)))?;
    let page_key = presented_browser_key(headers)?.to_owned();
    let own = is_same_origin(headers, request_authority(request.uri(), headers).as_deref());
    own.then_some(BrowserProof::Cookie(BrowserSecrets { cookie, page_key }))
}

/// Who the browser stands for. A cookie that is not known here may have been made by another node a moment ago.
pub async fn browser_credential(state: &HttpState, proof: BrowserProof) -> Option<BrowserCredential> {
    let secrets = match proof {
        BrowserProof::Ticket(ticket) => {
            return state.browsers.redeem_ticket(&state.tokens, &ticket, Instant::now()).await;
        }
        BrowserProof::Cookie(secrets) => secrets,
    };
    let known = || state.browsers.identify_cookie(&state.tokens, &secrets, SystemTime::now());
    match known() {
        None if state.tokens.refresh_for_unknown().await => known(),
        found => found,
    }
}

fn presented_browser_key(headers: &HeaderMap) -> Option<&str> {
    let in_header = headers.get(PAGE_KEY_HEADER).and_then(|key| key.to_str().ok());
    in_header.or_else(|| subprotocols(headers).find_map(|name| name.strip_prefix(PAGE_KEY_SUBPROTOCOL)))
}

/// The ticket of a WebSocket or an event stream: nothing else takes one from an address.
fn presented_browser_ticket(request: &Request) -> Option<String> {
    let headers = request.headers();
    let events = upgrade_header_contains_token(headers, header::ACCEPT, "text/event-stream");
    if request.method() != Method::GET || !(events || wants_websocket(headers)) {
        return None;
    }
    let pairs = request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let in_query = pairs.into_iter().find(|(name, _)| *name == "ticket").map(|(_, ticket)| ticket.to_owned());
    in_query.or_else(|| subprotocols(headers).find_map(|name| name.strip_prefix(TICKET_SUBPROTOCOL).map(str::to_owned)))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketRequest {
    #[serde(default)]
    phone: bool,
}

/// `POST /gander/tickets`: a ticket that stands for the caller's token.
pub async fn create_browser_ticket(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let wanted: TicketRequest = match bytes.is_empty() {
        true => TicketRequest::default(),
        false => match serde_json::from_slice(&bytes) {
            Ok(wanted) => wanted,
            Err(error) => {
                return problem_response(
                    StatusCode::BAD_REQUEST,
                    "bad_request",
                    &format!("bad ticket request: {error}"),
                );
            }
        },
    };
    let addresses = ConnectionAddresses::of_request(&Request::from_parts(parts.clone(), Body::empty()));
    if wanted.phone && !addresses.encrypted {
        let message =
            "a ticket for a phone needs TLS: start with gander serve --tls-self-signed, or use gander open --phone";
        return problem_response(StatusCode::BAD_REQUEST, "tls_needed", message);
    }
    let Some(token) = presented_browser_token(&state, parts.clone()).await else {
        let message = "a ticket is made with a token of this server, not with one of an identity provider";
        return problem_response(StatusCode::FORBIDDEN, "forbidden", message);
    };
    let ttl = if wanted.phone { PHONE_TICKET_TTL } else { TICKET_TTL };
    match state.browsers.issue_ticket(token, Instant::now(), ttl).await {
        Ok(ticket) => {
            let url = browser_ticket_url(&request_base_url(&parts), &ticket);
            let body = json!({ "ticket": ticket, "expiresInSeconds": ttl.as_secs(), "url": url });
            ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
        }
        Err(error) => browser_access_unavailable(&error),
    }
}

/// The address that opens the page with a ticket. Behind the `#` it is never sent to any server, and stands in no log.
pub fn browser_ticket_url(base: &str, ticket: &str) -> String {
    format!("{base}/#ticket={ticket}")
}

/// The token of a request, or the one behind its cookie.
async fn presented_browser_token(state: &HttpState, parts: Parts) -> Option<TokenId> {
    let request = Request::from_parts(parts, Body::empty());
    if let Some(token) = request_token(request.headers()) {
        return state.tokens.id_of(token, ConnectionAddresses::of_request(&request).local);
    }
    let proof = browser_proof(&request)?;
    drop(request);
    browser_credential(state, proof).await.map(|credential| credential.token)
}

#[derive(Deserialize)]
struct Login {
    ticket: String,
}

/// `POST /gander/login`: a cookie and a page key for a ticket.
pub async fn log_in_browser(State(state): State<Arc<HttpState>>, parts: Parts, body: Bytes) -> Response {
    let request = Request::from_parts(parts, Body::empty());
    let addresses = ConnectionAddresses::of_request(&request);
    let peer = addresses.peer.ip();
    if !is_same_origin(request.headers(), request_authority(request.uri(), request.headers()).as_deref()) {
        return problem_response(
            StatusCode::FORBIDDEN,
            "wrong_origin",
            "only a page of this server trades a ticket for a cookie",
        );
    }
    if is_from_another_user(&addresses) {
        let message = "this link belongs to another user of this machine";
        return problem_response(StatusCode::FORBIDDEN, "wrong_user", message);
    }
    let Ok(Login { ticket }) = serde_json::from_slice(&body) else {
        return problem_response(StatusCode::BAD_REQUEST, "bad_request", "the body must be {\"ticket\": \"…\"}");
    };
    drop(request);
    let redeemed = state.browsers.redeem_ticket(&state.tokens, &ticket, Instant::now()).await;
    let Some(credential) = redeemed else {
        // Counted like a wrong token: whoever guesses is slowed down.
        let message = "this link was used already or is too old: run gander open again";
        return match state.quotas.count_bad_token(peer, Instant::now()) {
            true => problem_response(StatusCode::UNAUTHORIZED, "bad_ticket", message),
            false => {
                crate::error::retry_later_response(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message, 60)
            }
        };
    };
    match state.browsers.issue_cookie(credential.token, SystemTime::now()).await {
        Ok(secrets) => {
            let headers = cookie_headers(&addresses, &secrets.cookie, COOKIE_TTL.as_secs());
            (headers, Json(json!({ "pageKey": secrets.page_key }))).into_response()
        }
        Err(error) => browser_access_unavailable(&error),
    }
}

/// `DELETE /gander/login`: this browser is out.
pub async fn log_out_browser(State(state): State<Arc<HttpState>>, request: Request) -> Response {
    let addresses = ConnectionAddresses::of_request(&request);
    let own = is_same_origin(request.headers(), request_authority(request.uri(), request.headers()).as_deref());
    let cookie = browser_cookie(request.headers(), &browser_cookie_name(&addresses)).filter(|_| own);
    drop(request);
    if let Some(cookie) = cookie
        && let Err(error) = state.browsers.revoke_cookie(&cookie).await
    {
        return browser_access_unavailable(&error);
    }
    (StatusCode::NO_CONTENT, cookie_headers(&addresses, "", 0)).into_response()
}

fn cookie_headers(addresses: &ConnectionAddresses, value: &str, seconds: u64) -> [(HeaderName, String); 2] {
    let secure = if addresses.encrypted { "; Secure" } else { "" };
    let name = browser_cookie_name(addresses);
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    [(header::SET_COOKIE, cookie), (header::CACHE_CONTROL, "no-store".to_owned())]
}

/// Browsers send a cookie to every port of a host: with the port in its name two servers do not overwrite each other's.
fn browser_cookie_name(addresses: &ConnectionAddresses) -> String {
    format!("gander_{}", addresses.local.port())
}

fn browser_cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

fn browser_access_unavailable(error: &std::io::Error) -> Response {
    tracing::error!(%error, "browsers cannot be stored");
    problem_response(
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        "the list of browsers cannot be written, see the server's log",
    )
}
