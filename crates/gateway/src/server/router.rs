//! The table of all routes, one line per protocol. A handler is reached through its line here or not at all.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use gander_domain::caller::Protocol;
use gander_http::health::GanderRoutes;
use gander_http::route::{Route, RouteRule};
use gander_http::state::HttpState;
use gander_http::{HttpProtocol, ProtocolAbout, RefusedRequest, error, fallback, guard};
use http::{Method, StatusCode, header};
use tower_http::catch_panic::CatchPanicLayer;

use super::Gateway;
use crate::protocols::a2a::A2aProtocol;
use crate::protocols::acp::AcpProtocol;
use crate::protocols::acp_rest::AcpRestProtocol;
use crate::protocols::adk::AdkProtocol;
use crate::protocols::goose::GooseProtocol;

macro_rules! route_tables {
    ($($protocol:ident: $kind:ident, $field:ident;)*) => {
        const TABLES: &[&[RouteRule]] =
            &[$(&rules_of_table::<_, { $kind::ROUTES.len() }>(Protocol::$protocol, $kind::ROUTES)),*];

        /// Every route there is.
        pub const ROUTES: &[RouteRule] = &join_tables::<{ count_router_rules(TABLES) }>(TABLES);

        /// Every protocol there is, as the description of the routes presents it.
        pub(crate) const ABOUT: &[(Protocol, ProtocolAbout)] = &[$((Protocol::$protocol, $kind::ABOUT)),*];

        /// What the handlers of each protocol share.
        #[derive(Debug)]
        pub(crate) struct ProtocolStates {
            $($field: Arc<<$kind as HttpProtocol>::State>,)*
        }

        /// What each protocol is set to.
        pub struct ProtocolSettings {
            $(
                /// Of this protocol.
                pub $field: <$kind as HttpProtocol>::Settings,
            )*
        }

        impl ProtocolStates {
            pub(crate) fn new(http: &Arc<HttpState>, settings: ProtocolSettings) -> Self {
                Self { $($field: $kind::new_state(http, settings.$field),)* }
            }
        }

        /// The router of every protocol.
        pub fn router(gateway: &Gateway) -> Router {
            router_with_guard(mount_protocols(gateway), &gateway.http)
        }

        pub(super) fn mount_protocols(gateway: &Gateway) -> Router {
            let router = Router::new();
            $(let router = mount_protocol_routes(
                router, Protocol::$protocol, $kind::ROUTES, &gateway.protocols.$field, &gateway.http,
            );)*
            router
        }

        /// A refusal of the outer layer in the words of its protocol; every other response as it is.
        fn word_router_refusal(protocol: Protocol, request: RefusedRequest<'_>, mut response: Response) -> Response {
            let Some(problem) = error::take_problem(&mut response) else { return response };
            match protocol {
                $(Protocol::$protocol => $kind::word_refusal(&problem, request, response),)*
                Protocol::Internal => response,
            }
        }
    };
}

// The protocol, the type that describes it, and its field among the settings.
route_tables! {
    Gander: GanderRoutes, gander;
    Acp: AcpProtocol, acp;
    A2a: A2aProtocol, a2a;
    AcpRest: AcpRestProtocol, acp_rest;
    Goose: GooseProtocol, goose;
    Adk: AdkProtocol, adk;
}

/// A router of these routes alone, behind the same guard.
pub fn guarded_test_router(routes: &'static [Route<Arc<HttpState>>], http: &Arc<HttpState>) -> Router {
    router_with_guard(mount_protocol_routes(Router::new(), Protocol::Gander, routes, http, http), http)
}

/// Mounts a table, each handler behind the checks of its own line.
fn mount_protocol_routes<S>(
    mut router: Router,
    protocol: Protocol,
    routes: &[Route<S>],
    state: &S,
    http: &Arc<HttpState>,
) -> Router
where
    S: Clone + Send + Sync + 'static,
{
    for route in routes {
        let (http, rule) = (http.clone(), route.rule(protocol));
        let check = move |request: Request, next: Next| guard::guard_route(http.clone(), rule, request, next);
        let handler = (route.serve)(route.verb.method_filter()).layer(middleware::from_fn(check));
        router = router.route(route.path, handler.with_state(state.clone()));
    }
    router
}

/// Puts the guard around all routes. The layer added last is entered first: refusals of everything below it, panics
/// and the guard's own among them, are translated into the caller's protocol.
pub(super) fn router_with_guard(router: Router, http: &Arc<HttpState>) -> Router {
    router
        .fallback(fallback::no_such_route_fallback)
        .method_not_allowed_fallback(fallback::method_not_allowed_fallback)
        // Every route has its own limit, kept before its handler: the framework's lower one would speak no protocol.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| error::panic_response()))
        .layer(middleware::from_fn_with_state(http.clone(), guard::guard_request))
        .layer(middleware::from_fn(translate_router_refusals))
}

/// The outermost layer: puts refusals that no handler worded into the form of the protocol whose address was called.
async fn translate_router_refusals(request: Request, next: Next) -> Response {
    // The path alone: a query may hold what is nobody's business.
    let (method, path, began) = (request.method().clone(), request.uri().path().to_owned(), Instant::now());
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    let mut response = next.run(request).await;
    // Looking through all routes costs more than many requests do: only a refusal needs to know whose address it was.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response = fallback::name_allowed_methods(response, &router_methods_of_path(&path));
    }
    if error::has_problem(&response) {
        let refused = RefusedRequest { method: &method, path: &path, is_grpc };
        response = word_router_refusal(router_protocol_of_path(&method, &path), refused, response);
    }
    tracing::debug!(%method, path, status = response.status().as_u16(), took = ?began.elapsed(), "request");
    response
}

/// The methods that an address has.
fn router_methods_of_path(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for route in ROUTES.iter().filter(|route| path_matches_router_pattern(route.path, path)) {
        if !names.contains(&route.verb.method_name()) {
            names.push(route.verb.method_name());
        }
    }
    names.join(", ")
}

/// The protocol of an address: that of its route, else that of the routes that begin like it.
fn router_protocol_of_path(method: &Method, path: &str) -> Protocol {
    let exact = |route: &&RouteRule| route.verb.matches(method) && path_matches_router_pattern(route.path, path);
    let other_verb = |route: &&RouteRule| path_matches_router_pattern(route.path, path);
    let found = ROUTES.iter().find(exact).or_else(|| ROUTES.iter().find(other_verb)).map(|route| route.protocol);
    found.unwrap_or_else(|| {
        let near = ROUTES.iter().map(|route| (shared_router_path_segments(route.path, path), route.protocol));
        let nearest = near.reduce(|best, next| if next.0 > best.0 { next } else { best });
        nearest.filter(|(shared, _)| *shared > 0).map_or(Protocol::Gander, |(_, protocol)| protocol)
    })
}

/// True if an address is one of a route.
fn path_matches_router_pattern(pattern: &str, path: &str) -> bool {
    let mut pieces = path.split('/');
    for segment in pattern.split('/') {
        if segment.starts_with("{*") {
            return pieces.next().is_some();
        }
        match pieces.next() {
            Some(piece) if segment == piece || (segment.starts_with('{') && !piece.is_empty()) => {}
            Some(_) | None => return false,
        }
    }
    pieces.next().is_none()
}

/// With how many equal pieces a route and an address begin.
fn shared_router_path_segments(pattern: &str, path: &str) -> usize {
    let pieces = pattern.split('/').zip(path.split('/')).skip(1);
    pieces.take_while(|(segment, piece)| segment == piece && !piece.is_empty()).count()
}

const fn rules_of_table<S, const N: usize>(protocol: Protocol, routes: &[Route<S>]) -> [RouteRule; N] {
    let mut rules = [routes[0].rule(protocol); N];
    let mut line = 0;
    while line < N {
        rules[line] = routes[line].rule(protocol);
        line += 1;
    }
    rules
}

const fn count_router_rules(tables: &[&[RouteRule]]) -> usize {
    let (mut total, mut table) = (0, 0);
    while table < tables.len() {
        total += tables[table].len();
        table += 1;
    }
    total
}

const fn join_tables<const N: usize>(tables: &[&[RouteRule]]) -> [RouteRule; N] {
    let mut all = [tables[0][0]; N];
    let (mut next, mut table) = (0, 0);
    while table < tables.len() {
        let mut line = 0;
        while line < tables[table].len() {
            all[next] = tables[table][line];
            next += 1;
            line += 1;
        }
        table += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_protocol_of_its_route_or_of_its_neighbours() {
        let known = [
            (Method::GET, "/runs/1", Protocol::AcpRest),
            (Method::PUT, "/runs/1/nothing", Protocol::AcpRest),
            (Method::GET, "/acp-rest/what", Protocol::AcpRest),
            (Method::GET, "/sessions/1", Protocol::AcpRest),
            (Method::DELETE, "/sessions/1", Protocol::Goose),
            (Method::GET, "/sessions/1/export", Protocol::Goose),
            (Method::POST, "/agent/fly", Protocol::Goose),
            (Method::PATCH, "/acp", Protocol::Acp),
            (Method::GET, "/apps/a/what", Protocol::Adk),
            (Method::GET, "/api/run", Protocol::Adk),
            (Method::GET, "/a2a/x/y/z", Protocol::A2a),
            (Method::POST, "/lf.a2a.v1.A2AService/SendMessage", Protocol::A2a),
            (Method::GET, "/nowhere", Protocol::Gander),
            (Method::GET, "/gander/status", Protocol::Gander),
            (Method::GET, "/gander/what", Protocol::Gander),
            (Method::GET, "/health", Protocol::Gander),
        ];
        for (method, path, protocol) in known {
            assert_eq!(router_protocol_of_path(&method, path), protocol, "{method} {path}");
        }
    }
}
