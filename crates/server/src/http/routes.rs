//! The table of routes. A handler is reached through its line here or not at all, and each line says who may come in.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::routing::{MethodFilter, MethodRouter, on};
use tower_http::catch_panic::CatchPanicLayer;

use super::site::Site;
use super::{acp, error, front, own};
use crate::token::Scope;

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
    pub serve: fn(MethodFilter) -> MethodRouter<Arc<Site>>,
}

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

/// Every route there is.
pub const ROUTES: &[Route] = &[
    public("/", |verb| on(verb, own::welcome)),
    public("/health", |verb| on(verb, own::health)),
    public("/ping", |verb| on(verb, own::ping)),
    public("/status", |verb| on(verb, own::alive)),
    public("/features", |verb| on(verb, own::features)),
    Route {
        verb: Verb::Get,
        path: "/gander/status",
        access: Access::Token(Scope::Read),
        payload: Payload::None,
        serve: |verb| on(verb, own::status),
    },
    Route {
        verb: Verb::Get,
        path: "/acp",
        access: Access::Token(Scope::Prompt),
        payload: Payload::None,
        serve: |verb| on(verb, acp::get),
    },
    Route {
        verb: Verb::Post,
        path: "/acp",
        access: Access::Token(Scope::Prompt),
        payload: Payload::Json(Size::Prompt),
        serve: |verb| on(verb, acp::post),
    },
    Route {
        verb: Verb::Delete,
        path: "/acp",
        access: Access::Token(Scope::Prompt),
        payload: Payload::None,
        serve: |verb| on(verb, acp::delete),
    },
];

/// Builds the router: the guard around everything, a line's own checks around its handler.
pub fn router(routes: &'static [Route], site: &Arc<Site>) -> Router {
    let mut router = Router::new();
    for route in routes {
        let site = site.clone();
        let check = move |request: Request, next: Next| front::enter(site.clone(), route, request, next);
        let mounted = (route.serve)(route.verb.filter()).layer(middleware::from_fn(check));
        router = router.route(route.path, mounted);
    }
    let counted = site.clone();
    router
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(site.clone())
        .layer(CatchPanicLayer::custom(move |_| error::panicked(&counted)))
        .layer(middleware::from_fn_with_state(site.clone(), front::guard))
}

const fn public(path: &'static str, serve: fn(MethodFilter) -> MethodRouter<Arc<Site>>) -> Route {
    Route { verb: Verb::Get, path, access: Access::Public, payload: Payload::None, serve }
}

impl Verb {
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
