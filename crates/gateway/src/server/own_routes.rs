//! Routes that an embedder serves beside those of the protocols, behind the same guard.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::routing::MethodRouter;
use gander_domain::caller::{Protocol, Scope};
use gander_http::guard;
use gander_http::route::{Access, Payload, RouteRule, Size, Verb};

use super::Gateway;
use super::router::{ROUTES, mount_protocols, router_with_guard};

/// A route of an embedder's own.
#[derive(Clone, Debug)]
pub struct OwnRoute {
    /// Its address, as axum writes it: `/weather/{city}`.
    pub path: String,
    /// Who may call it.
    pub access: RouteAccess,
    /// Its handlers, one per method.
    pub handlers: MethodRouter,
}

/// Who may call a route of an embedder's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Whoever has a token with this scope. Handlers find the caller among the request's extensions.
    Token(Scope),
    /// Everybody who can reach the server.
    Public,
}

/// Why a route cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRoute {
    /// It is no address.
    #[error("a route begins with a slash: {0:?}")]
    NoSlash(String),
    /// A protocol, or another route, has this address.
    #[error("there is a route at this address already: {0}")]
    Taken(String),
}

/// The router of every protocol and of these routes.
pub fn router_with_routes(gateway: &Gateway, own: Vec<OwnRoute>) -> Result<Router, BadRoute> {
    let mut taken: Vec<String> = ROUTES.iter().map(|route| own_route_path_shape(route.path)).collect();
    let mut router = mount_protocols(gateway);
    for OwnRoute { path, access, handlers } in own {
        if !path.starts_with('/') {
            return Err(BadRoute::NoSlash(path));
        }
        let shape = own_route_path_shape(&path);
        if taken.contains(&shape) {
            return Err(BadRoute::Taken(path));
        }
        taken.push(shape);
        let access = match access {
            RouteAccess::Public => Access::Public,
            RouteAccess::Token(scope) => Access::Token(scope),
        };
        // The checks look at access and payload alone; method and address were matched by the router.
        let payload = Payload::Any(Size::Prompt);
        let rule = RouteRule { verb: Verb::Get, path: "/", access, payload, protocol: Protocol::Gander };
        let http = Arc::clone(&gateway.http);
        let check = move |request: Request, next: Next| guard::guard_route(Arc::clone(&http), rule, request, next);
        router = router.route(&path, handlers.layer(middleware::from_fn(check)));
    }
    Ok(router_with_guard(router, &gateway.http))
}

/// An address without the names of its variables: two of one shape cannot be told apart.
fn own_route_path_shape(path: &str) -> String {
    let pieces = path.split('/').map(|piece| match piece {
        piece if piece.starts_with("{*") => "{*}",
        piece if piece.starts_with('{') => "{}",
        piece => piece,
    });
    pieces.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_do_not_tell_routes_apart() {
        assert_eq!(own_route_path_shape("/a/{b}/c/{*rest}"), own_route_path_shape("/a/{x}/c/{*y}"));
        assert_ne!(own_route_path_shape("/a/{b}"), own_route_path_shape("/a/b"));
    }
}
