//! The guard around everything, and the checks of one route: in this order, before a body is read.
//!
//! Name, origin, preflight, sizes of address and header; then token, scope, rate, draining, type and size of the body.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::accept::Address;
use super::body;
use super::error::{self, later, problem};
use super::host::Stranger;
use super::quota::Origin;
use super::routes::{Access, Route};
use super::site::Site;
use crate::config::Door;
use crate::token::{Identity, Scope};

/// Headers that hold nothing but a token: goose's, and the one of many REST clients.
const SECRETS: [HeaderName; 2] = [HeaderName::from_static("x-secret-key"), HeaderName::from_static("x-api-key")];

/// Around everything: whoever is not meant gets no further than this.
pub(super) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    // The path alone: a query may hold what is nobody's business.
    let (method, path, began) = (request.method().clone(), request.uri().path().to_owned(), Instant::now());
    let response = admit(&site, request, next).await;
    tracing::debug!(%method, path, status = response.status().as_u16(), took = ?began.elapsed(), "request");
    response
}

async fn admit(site: &Site, request: Request, next: Next) -> Response {
    let local = Address::of(&request).local.ip();
    let origin = match site.names.check(request.uri(), request.headers(), local) {
        Ok(origin) => origin,
        Err(stranger) => return error::closing(refuse(stranger)),
    };
    let response = match (&origin, preflight(&request)) {
        (Some(_), Some(preflight)) => preflight,
        (Some(_) | None, _) => match oversized(site, &request) {
            Some(refusal) => error::closing(refusal),
            None => next.run(request).await,
        },
    };
    with_cors(response, origin)
}

/// Around one route's handler.
pub(super) async fn enter(site: Arc<Site>, route: &'static Route, mut request: Request, next: Next) -> Response {
    let identified = match route.access {
        Access::Public => None,
        Access::Door(door, scope) if site.lets_in(door, &request) => Some(visitor(&site, &request, scope)),
        Access::Token(scope) | Access::Door(_, scope) => Some(identify(&site, &request, scope)),
    };
    match identified.transpose() {
        Ok(identity) => identity.and_then(|identity| request.extensions_mut().insert(identity)),
        Err(refusal) => return *refusal,
    };
    if site.draining() && !request.method().is_safe() {
        return later(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is about to end", 5);
    }
    match body::take(&site.limits, route.payload, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => *refusal,
    }
}

fn refuse(stranger: Stranger) -> Response {
    match stranger {
        Stranger::NoHost => problem(StatusCode::BAD_REQUEST, "bad_host", "exactly one Host is needed"),
        Stranger::WrongHost => {
            problem(StatusCode::FORBIDDEN, "wrong_host", "no such name here, see server.allowed_hosts")
        }
        Stranger::WrongOrigin => {
            problem(StatusCode::FORBIDDEN, "wrong_origin", "this origin may not call, see server.allowed_origins")
        }
    }
}

/// The answer to a browser that asks whether an allowed page may send this.
fn preflight(request: &Request) -> Option<Response> {
    let method = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
    if request.method() != Method::OPTIONS {
        return None;
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    if let Some(names) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    Some((StatusCode::NO_CONTENT, headers).into_response())
}

fn oversized(site: &Site, request: &Request) -> Option<Response> {
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if uri > site.limits.uri.len() {
        return Some(problem(StatusCode::URI_TOO_LONG, "uri_too_long", "the address is too long"));
    }
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let (count, size) = lines.fold((0, 0), |(count, size), line| (count + 1, size + line));
    let fits = count <= site.limits.header_lines && size <= site.limits.header_size.len();
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    (!fits).then(|| problem(status, "header_too_large", "the header is too large"))
}

/// An allowed page is named exactly; nobody else is told anything.
fn with_cors(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

fn identify(site: &Site, request: &Request, scope: Scope) -> Result<Identity, Box<Response>> {
    let now = Instant::now();
    let Some(identity) = credential(request.headers()).and_then(|token| site.tokens.identify(token)) else {
        let peer = Address::of(request).peer.ip();
        return Err(Box::new(if site.quotas.bad_try(peer, now) { error::unauthorized() } else { too_many(60) }));
    };
    permit(site, request, identity, scope)
}

/// Whoever comes in by an open door without a token.
fn visitor(site: &Site, request: &Request, scope: Scope) -> Result<Identity, Box<Response>> {
    let mut identity = Identity::owner();
    identity.scopes.remove(&Scope::Admin);
    permit(site, request, identity, scope)
}

fn permit(site: &Site, request: &Request, identity: Identity, scope: Scope) -> Result<Identity, Box<Response>> {
    let from = Origin::of(Address::of(request).peer.ip());
    if !site.quotas.take(&identity.principal, from, Instant::now()) {
        return Err(Box::new(too_many(1)));
    }
    if !identity.may(scope) {
        let refusal = problem(StatusCode::FORBIDDEN, "forbidden", "this token may not do that");
        return Err(Box::new(refusal));
    }
    Ok(identity)
}

impl Site {
    /// True if the owner opened this door, and somebody on this machine brings no token of any kind.
    fn lets_in(&self, door: Door, request: &Request) -> bool {
        let Address { peer, local, .. } = Address::of(request);
        let headers = request.headers();
        let named =
            headers.contains_key(header::AUTHORIZATION) || SECRETS.iter().any(|name| headers.contains_key(name));
        self.open.contains(&door) && !named && peer.ip().is_loopback() && local.ip().is_loopback()
    }
}

fn too_many(seconds: u64) -> Response {
    later(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests", seconds)
}

/// The one token of a request. Two are none: nobody could say which of them counted.
fn credential(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get_all(header::AUTHORIZATION).iter().map(|value| bearer(value.to_str().ok()?));
    let secret = SECRETS.into_iter().flat_map(|name| headers.get_all(name)).map(|value| value.to_str().ok());
    let mut all = bearer.chain(secret);
    match (all.next(), all.next()) {
        (Some(token), None) => token.filter(|token| !token.is_empty()),
        (Some(_) | None, _) => None,
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
