//! The guard around everything, and the checks of one route: in this order, before a body is read.
//!
//! Name, origin, preflight, sizes of address and header; then token, scope, rate, draining, type and size of the body.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gander_domain::caller::{Caller, Identity, Scope, Transport};
use gander_services::oidc::{OidcError, OidcProvider};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

use crate::body;
use crate::browser::{self, BrowserProof};
use crate::connection_addresses::ConnectionAddresses;
use crate::error::{self, problem_response, retry_later_response};
use crate::origin_check::HostRejected;
use crate::request_scanner::FramingError;
use crate::request_token::{presents_token, request_token};
use crate::request_trace::RequestTrace;
use crate::revocation::{Revoked, end_when_revoked};
use crate::route::{Access, RouteRule};
use crate::settings::OpenProtocol;
use crate::state::HttpState;

/// Headers that proxies add, by which a request that arrives on loopback shows that it came from elsewhere.
const FORWARDING_HEADERS: [HeaderName; 8] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("cf-connecting-ip"),
    HeaderName::from_static("true-client-ip"),
];

/// What a node serves that runs sessions only.
const NODE_ROUTES: [&str; 4] = ["/health", "/metrics", "/ping", "/status"];

/// Around everything: whoever is not meant gets no further than this.
pub async fn guard_request(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    if let Some(bad) = request.extensions().get::<FramingError>() {
        let (code, message) = match bad {
            FramingError::TwoLengths => ("two_lengths", "Content-Length and Transfer-Encoding exclude each other"),
            FramingError::Chunk => ("chunk_too_large", "a chunk is larger than any body"),
        };
        return error::error_with_connection_close(problem_response(StatusCode::BAD_REQUEST, code, message));
    }
    if has_unknown_transfer_coding(&request) {
        let message = "the only Transfer-Encoding that is taken: chunked";
        let refusal = problem_response(StatusCode::NOT_IMPLEMENTED, "unsupported_transfer_encoding", message);
        return error::error_with_connection_close(refusal);
    }
    let local = ConnectionAddresses::of_request(&request).local.ip();
    let origin = match state.names.check(request.uri(), request.headers(), local) {
        Ok(origin) => origin,
        Err(rejected) => return error::error_with_connection_close(guard_host_refusal(rejected)),
    };
    let response = match (&origin, guard_preflight_response(&request)) {
        (Some(_), Some(preflight)) => preflight,
        (Some(_) | None, _) => match guard_oversized_refusal(&state, &request) {
            Some(refusal) => error::error_with_connection_close(refusal),
            None => next.run(request).await,
        },
    };
    guarded_with_cors(response, origin)
}

/// Around one route's handler.
pub async fn guard_route(state: Arc<HttpState>, route: RouteRule, mut request: Request, next: Next) -> Response {
    if !state.services.hub.serves_clients() && !NODE_ROUTES.contains(&route.path) {
        let message = "this node runs sessions and serves no clients: ask a gateway, or a node with the role all";
        let refusal = problem_response(StatusCode::MISDIRECTED_REQUEST, "worker", message);
        return body::refuse_unread_body(request, refusal).await;
    }
    let identified = match route.access {
        Access::Public => None,
        Access::OpenProtocol(protocol, scope) if state.admits_without_token(protocol, &request) => {
            Some(guarded_caller_without_token(&state, &request, &route, scope).map(|caller| (caller, None)))
        }
        Access::Token(scope) | Access::OpenProtocol(_, scope) => {
            // Only the token itself is held while the identity provider's keys may be fetched: a request is not `Sync`.
            let presented = find_credential(&state, &request);
            let addresses = ConnectionAddresses::of_request(&request);
            let credential = resolve_credential(&state, presented, &addresses).await;
            let counted = credential.map_err(|refusal| count_refusal(&state, &request, refusal));
            Some(counted.and_then(|credential| guard_identify_caller(&state, &request, &route, scope, credential)))
        }
    };
    let (trace, revoked) = match identified.transpose() {
        Ok(Some((mut caller, revoked))) => {
            let telemetry = &state.services.telemetry;
            let trace = RequestTrace::begin(telemetry, &route, request.method(), request.headers(), &mut caller);
            request.extensions_mut().insert(caller);
            (trace, revoked)
        }
        Ok(None) => (None, None),
        Err(refusal) => return body::refuse_unread_body(request, *refusal).await,
    };
    if let Some(revoked) = &revoked {
        request.extensions_mut().insert(Revoked(revoked.clone()));
    }
    if state.is_draining() && !request.method().is_safe() {
        let refusal =
            retry_later_response(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is about to end", 5);
        return body::refuse_unread_body(request, refusal).await;
    }
    let response = match body::read_body(&state.limits, route.payload, request).await {
        Ok(request) => end_when_revoked(next.run(request).await, revoked),
        Err(refusal) => *refusal,
    };
    if let Some(trace) = trace {
        trace.end(&response);
    }
    response
}

/// A body in another coding than chunks would be taken for what it is not.
fn has_unknown_transfer_coding(request: &Request) -> bool {
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    codings.next().is_some_and(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
        || codings.next().is_some()
}

fn guard_host_refusal(rejected: HostRejected) -> Response {
    match rejected {
        HostRejected::NoHost => problem_response(StatusCode::BAD_REQUEST, "bad_host", "exactly one Host is needed"),
        HostRejected::WrongHost => {
            problem_response(StatusCode::FORBIDDEN, "wrong_host", "no such name here, see server.allowed_hosts")
        }
        HostRejected::WrongOrigin => problem_response(
            StatusCode::FORBIDDEN,
            "wrong_origin",
            "this origin may not call, see server.allowed_origins",
        ),
    }
}

/// The answer to a browser that asks whether an allowed page may send this.
fn guard_preflight_response(request: &Request) -> Option<Response> {
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

fn guard_oversized_refusal(state: &HttpState, request: &Request) -> Option<Response> {
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if uri > state.limits.uri.len() {
        return Some(problem_response(StatusCode::URI_TOO_LONG, "uri_too_long", "the address is too long"));
    }
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let (count, size) = lines.fold((0, 0), |(count, size), line| (count + 1, size + line));
    let fits = count <= state.limits.header_lines && size <= state.limits.header_size.len();
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    (!fits).then(|| problem_response(status, "header_too_large", "the header is too large"))
}

/// An allowed page is named exactly; nobody else is told anything. Whoever may come back is told when.
fn guarded_with_cors(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let status = response.status();
    let headers = response.headers_mut();
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        headers.entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
    }
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

/// Who a credential stands for, and what is cancelled when it ends before its time.
type Credential = (Identity, Option<CancellationToken>);

/// What a request brings to prove who calls.
enum PresentedCredential {
    Known(Credential),
    Refused(Box<Response>),
    Browser(BrowserProof),
    /// Another node may have made it a moment ago.
    UnknownToken(String),
    /// A token that none of ours is: the identity provider may have made it.
    Jwt(Arc<OidcProvider>, String),
}

/// What a token, or else a browser's ticket or cookie, stands for. Tokens of this server come first: the identity
/// provider is asked about nothing that is one of them.
fn find_credential(state: &HttpState, request: &Request) -> PresentedCredential {
    if !presents_token(request.headers()) {
        return match browser::browser_proof(request) {
            Some(proof) => PresentedCredential::Browser(proof),
            None => PresentedCredential::Refused(Box::new(error::token_needed_response())),
        };
    }
    let local = ConnectionAddresses::of_request(request).local;
    let token = request_token(request.headers());
    if let Some(credential) = token.and_then(|token| state.tokens.identify_at(token, local)) {
        return PresentedCredential::Known(credential);
    }
    match state.tokens.provider().zip(token.filter(|token| OidcProvider::is_jwt(token))) {
        Some((provider, token)) => PresentedCredential::Jwt(Arc::clone(provider), token.to_owned()),
        None => match token {
            Some(token) => PresentedCredential::UnknownToken(token.to_owned()),
            None => PresentedCredential::Refused(Box::new(error::invalid_token_response())),
        },
    }
}

/// Asks whoever may know the credential: the database that nodes share, or the identity provider.
async fn resolve_credential(
    state: &HttpState,
    presented: PresentedCredential,
    addresses: &ConnectionAddresses,
) -> Result<Credential, Box<Response>> {
    match presented {
        PresentedCredential::Known(credential) => Ok(credential),
        PresentedCredential::Refused(refusal) => Err(refusal),
        PresentedCredential::Jwt(provider, token) => ask_provider(&provider, &token).await,
        PresentedCredential::Browser(proof) => match browser::browser_credential(state, proof).await {
            Some(known) => Ok((known.identity, Some(known.revoked))),
            None => Err(Box::new(error::token_needed_response())),
        },
        PresentedCredential::UnknownToken(token) => {
            let is_read = state.tokens.refresh_for_unknown().await;
            let found = is_read.then(|| state.tokens.identify_at(&token, addresses.local)).flatten();
            found.ok_or_else(|| Box::new(error::invalid_token_response()))
        }
    }
}

async fn ask_provider(provider: &OidcProvider, token: &str) -> Result<Credential, Box<Response>> {
    match provider.identify(token, SystemTime::now()).await {
        Ok((identity, ended)) => Ok((identity, Some(ended))),
        Err(OidcError::Unavailable) => {
            let message = "the keys of the identity provider cannot be fetched, see the server's log";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Err(Box::new(retry_later_response(status, "identity_provider_unavailable", message, 10)))
        }
        Err(refused) => Err(Box::new(error::refused_jwt_response(&refused.to_string()))),
    }
}

/// Whoever comes with wrong ones again and again is told so no longer.
fn count_refusal(state: &HttpState, request: &Request, refusal: Box<Response>) -> Box<Response> {
    if refusal.status() != StatusCode::UNAUTHORIZED {
        return refusal;
    }
    let peer = ConnectionAddresses::of_request(request).peer.ip();
    match state.quotas.count_bad_token(peer, Instant::now()) {
        true => refusal,
        false => Box::new(guard_too_many_requests(60)),
    }
}

/// The caller that a credential stands for, if it may do what the route does.
fn guard_identify_caller(
    state: &HttpState,
    request: &Request,
    route: &RouteRule,
    scope: Scope,
    (identity, revoked): Credential,
) -> Result<(Caller, Option<CancellationToken>), Box<Response>> {
    guard_authorize_caller(state, request, route, identity, scope).map(|caller| (caller, revoked))
}

/// A caller without a token at a protocol that is open to such: reads and prompts, and answers only if that was opened too.
fn guarded_caller_without_token(
    state: &HttpState,
    request: &Request,
    route: &RouteRule,
    scope: Scope,
) -> Result<Caller, Box<Response>> {
    let mut identity = Identity::owner();
    identity.scopes = [Scope::Read, Scope::Prompt].into();
    if state.open_approve {
        identity.scopes.insert(Scope::Approve);
    }
    guard_authorize_caller(state, request, route, identity, scope)
}

fn guard_authorize_caller(
    state: &HttpState,
    request: &Request,
    route: &RouteRule,
    identity: Identity,
    scope: Scope,
) -> Result<Caller, Box<Response>> {
    let caller = Caller::with_token(identity, route.protocol, guarded_request_transport(request));
    if !state.quotas.take_request(&caller, Instant::now()) {
        return Err(Box::new(guard_too_many_requests(1)));
    }
    if !caller.has_scope(scope) {
        let message = format!("this token may not do that: it needs the scope {scope}");
        return Err(Box::new(problem_response(StatusCode::FORBIDDEN, "forbidden", &message)));
    }
    Ok(caller)
}

/// Whether a request was made on this machine. A proxy on it speaks for whoever is behind: it is as far away as they.
fn guarded_request_transport(request: &Request) -> Transport {
    let ConnectionAddresses { peer, local, .. } = ConnectionAddresses::of_request(request);
    let forwarded = FORWARDING_HEADERS.iter().any(|name| request.headers().contains_key(name));
    match peer.ip().to_canonical().is_loopback() && local.ip().to_canonical().is_loopback() && !forwarded {
        true => Transport::Loopback,
        false => Transport::Network,
    }
}

impl HttpState {
    /// True if the owner opened this protocol to callers without a token, and somebody on this machine brings no token of any kind.
    fn admits_without_token(&self, protocol: OpenProtocol, request: &Request) -> bool {
        self.open.contains(&protocol)
            && !presents_token(request.headers())
            && guarded_request_transport(request).is_same_machine()
    }
}

fn guard_too_many_requests(seconds: u64) -> Response {
    retry_later_response(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests", seconds)
}
