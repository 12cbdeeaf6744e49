//! The table of all routes, one line per protocol. A handler is reached through its line here or not at all.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{self, Next};
use gander_domain::caller::Protocol;
use tower_http::catch_panic::CatchPanicLayer;

use super::Gateway;
use super::refusals::translate_refusals;
use crate::http::route::{Route, RouteRule};
use crate::http::state::HttpState;
use crate::http::{error, guard, health};
use crate::protocols::{a2a, acp, acp_rest, adk, goose};

macro_rules! route_tables {
    ($($protocol:ident: $routes:path, $state:ident;)*) => {
        const TABLES: &[&[RouteRule]] =
            &[$(&rules_of_table::<_, { $routes.len() }>(Protocol::$protocol, $routes)),*];

        /// Every route there is.
        pub const ROUTES: &[RouteRule] = &join_tables::<{ count_rules(TABLES) }>(TABLES);

        /// The router of every protocol.
        pub fn router(gateway: &Gateway) -> Router {
            let router = Router::new();
            $(let router = mount(router, Protocol::$protocol, $routes, &gateway.$state, &gateway.http);)*
            guarded(router, &gateway.http)
        }
    };
}

// The protocol, its routes, and the field of `Gateway` that its handlers share.
route_tables! {
    Gander: health::ROUTES, http;
    Acp: acp::routes::ROUTES, acp;
    A2a: a2a::routes::ROUTES, a2a;
    AcpRest: acp_rest::routes::ROUTES, acp_rest;
    Goose: goose::routes::ROUTES, http;
    Adk: adk::routes::ROUTES, adk;
}

/// A router of these routes alone, behind the same guard.
pub fn router_of(routes: &'static [Route], http: &Arc<HttpState>) -> Router {
    guarded(mount(Router::new(), Protocol::Gander, routes, http, http), http)
}

/// Mounts a table, each handler behind the checks of its own line.
fn mount<S>(mut router: Router, protocol: Protocol, routes: &[Route<S>], state: &S, http: &Arc<HttpState>) -> Router
where
    S: Clone + Send + Sync + 'static,
{
    for route in routes {
        let (http, rule) = (http.clone(), route.rule(protocol));
        let check = move |request: Request, next: Next| guard::check_route(http.clone(), rule, request, next);
        let handler = (route.serve)(route.verb.method_filter()).layer(middleware::from_fn(check));
        router = router.route(route.path, handler.with_state(state.clone()));
    }
    router
}

/// Puts the guard around all routes. The layer added last is entered first: refusals of everything below it, panics
/// and the guard's own among them, are translated into the caller's protocol.
fn guarded(router: Router, http: &Arc<HttpState>) -> Router {
    router
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::method_not_allowed)
        // Every route has its own limit, kept before its handler: the framework's lower one would speak no protocol.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| error::handler_panicked()))
        .layer(middleware::from_fn_with_state(http.clone(), guard::check_request))
        .layer(middleware::from_fn(translate_refusals))
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

const fn count_rules(tables: &[&[RouteRule]]) -> usize {
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
