//! The table of routes. A handler is reached through its line here or not at all, and each line says who may come in.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{self, Next};
use axum::routing::{MethodFilter, MethodRouter};
use gander_domain::caller::{Protocol, Scope};
use http::Method;
use tower_http::catch_panic::CatchPanicLayer;

use super::site::Site;
use super::{error, front, own};
use crate::protocols::{a2a, acp, acp_rest, adk, goose};
use crate::settings::Door;

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// The path, with `{name}` for parameters.
    pub path: &'static str,
    /// Who may come in.
    pub access: Access,
    /// What may be brought along.
    pub payload: Payload,
    /// Mounts the handler under the method it is given.
    pub serve: Serve,
    /// Whose table it is in.
    pub protocol: Protocol,
}

/// Mounts a handler.
pub type Serve = fn(MethodFilter) -> MethodRouter<Arc<Site>>;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Looks. Also answers HEAD.
    Get,
    /// Does.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Whoever has a token with this scope.
    Token(Scope),
    /// The same; and whoever is on this machine, if the owner opened this door.
    Door(Door, Scope),
}

/// What a request may bring along. It is read before the handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// JSON, and it must say so.
    Json(Size),
    /// Anything, for protocols whose clients do not name a type.
    Any(Size),
}

/// Which of the limits holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// `limits.body`.
    Small,
    /// `limits.prompt_body`.
    Prompt,
}

/// The tables, one per protocol.
pub(crate) const TABLES: &[(Protocol, &[Route])] = &[
    (Protocol::Gander, own::ROUTES),
    (Protocol::Acp, acp::routes::ROUTES),
    (Protocol::A2a, a2a::routes::ROUTES),
    (Protocol::AcpRest, acp_rest::routes::ROUTES),
    (Protocol::Goose, goose::routes::ROUTES),
    (Protocol::Adk, adk::routes::ROUTES),
];

/// Every route there is.
pub const ROUTES: &[Route] = &joined::<{ count(TABLES) }>(TABLES);

/// Builds the router: the guard around everything, a line's own checks around its handler.
pub fn router(routes: &'static [Route], site: &Arc<Site>) -> Router {
    let mut router = Router::new();
    for route in routes {
        let site = site.clone();
        let check = move |request: Request, next: Next| front::enter(site.clone(), route, request, next);
        let mounted = (route.serve)(route.verb.filter()).layer(middleware::from_fn(check));
        router = router.route(route.path, mounted);
    }
    router
        .fallback(error::nowhere)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(site.clone())
        // Every route has its own limit, kept before its handler: the framework's lower one would speak no protocol.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(|_| error::panicked()))
        .layer(middleware::from_fn_with_state(site.clone(), front::guard))
}

impl Route {
    /// A line that everybody may read.
    pub(crate) const fn public(path: &'static str, serve: Serve) -> Self {
        Self {
            verb: Verb::Get,
            path,
            access: Access::Public,
            payload: Payload::None,
            serve,
            protocol: Protocol::Gander,
        }
    }

    /// A line for reading.
    pub(crate) const fn get(path: &'static str, access: Access, serve: Serve) -> Self {
        Self { verb: Verb::Get, path, access, payload: Payload::None, serve, protocol: Protocol::Gander }
    }

    /// A line for doing.
    pub(crate) const fn post(path: &'static str, access: Access, payload: Payload, serve: Serve) -> Self {
        Self { verb: Verb::Post, path, access, payload, serve, protocol: Protocol::Gander }
    }
}

const fn count(tables: &[(Protocol, &[Route])]) -> usize {
    let (mut total, mut table) = (0, 0);
    while table < tables.len() {
        total += tables[table].1.len();
        table += 1;
    }
    total
}

const fn joined<const N: usize>(tables: &[(Protocol, &[Route])]) -> [Route; N] {
    let mut all = [tables[0].1[0]; N];
    let (mut next, mut table) = (0, 0);
    while table < tables.len() {
        let mut line = 0;
        let (protocol, lines) = tables[table];
        while line < lines.len() {
            all[next] = lines[line];
            all[next].protocol = protocol;
            next += 1;
            line += 1;
        }
        table += 1;
    }
    all
}

impl Verb {
    /// True if this method is meant.
    pub(crate) fn is(self, method: &Method) -> bool {
        match self {
            Self::Get => method == Method::GET || method == Method::HEAD,
            Self::Post => method == Method::POST,
            Self::Put => method == Method::PUT,
            Self::Patch => method == Method::PATCH,
            Self::Delete => method == Method::DELETE,
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}
