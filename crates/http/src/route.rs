//! One line of a protocol's route table: its path, who may call it, what it may bring, and its handler.

use axum::routing::{MethodFilter, MethodRouter};
use gander_domain::caller::{Protocol, Scope};
use http::Method;

use crate::settings::OpenProtocol;

/// One line of a table. `S` is what the protocol's handlers share.
#[derive(Debug)]
pub struct Route<S> {
    /// The method.
    pub verb: Verb,
    /// The path, with `{name}` for parameters.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// What a request may bring along.
    pub payload: Payload,
    /// Mounts the handler under the method it is given.
    pub serve: Serve<S>,
}

/// Mounts a handler.
pub type Serve<S> = fn(MethodFilter) -> MethodRouter<S>;

/// What the guard checks of a route before its handler runs.
#[derive(Clone, Copy, Debug)]
pub struct RouteRule {
    /// The method.
    pub verb: Verb,
    /// The path, with `{name}` for parameters.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// What a request may bring along.
    pub payload: Payload,
    /// Whose table the route is in.
    pub protocol: Protocol,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Also answers HEAD.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Whoever has a token with this scope.
    Token(Scope),
    /// The same; and whoever is on this machine, if the owner opened this protocol to callers without a token.
    OpenProtocol(OpenProtocol, Scope),
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

/// Which of the limits on bodies holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// `limits.body`.
    Small,
    /// `limits.prompt_body`.
    Prompt,
}

// Not derived: a derive would demand `S: Copy`, and no `S` is held here.
impl<S> Clone for Route<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Route<S> {}

impl<S> Route<S> {
    /// A GET that needs no token.
    pub const fn public(path: &'static str, serve: Serve<S>) -> Self {
        Self { verb: Verb::Get, path, access: Access::Public, payload: Payload::None, serve }
    }

    /// A GET.
    pub const fn get(path: &'static str, access: Access, serve: Serve<S>) -> Self {
        Self { verb: Verb::Get, path, access, payload: Payload::None, serve }
    }

    /// A POST.
    pub const fn post(path: &'static str, access: Access, payload: Payload, serve: Serve<S>) -> Self {
        Self { verb: Verb::Post, path, access, payload, serve }
    }

    /// What the guard checks of it in this protocol's table.
    pub const fn rule(&self, protocol: Protocol) -> RouteRule {
        RouteRule { verb: self.verb, path: self.path, access: self.access, payload: self.payload, protocol }
    }
}

impl Verb {
    /// The name of its method.
    pub fn method_name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// True if requests with this HTTP method come to a route of this verb.
    pub fn matches(self, method: &Method) -> bool {
        match self {
            Self::Get => method == Method::GET || method == Method::HEAD,
            Self::Post => method == Method::POST,
            Self::Put => method == Method::PUT,
            Self::Patch => method == Method::PATCH,
            Self::Delete => method == Method::DELETE,
        }
    }

    /// The router's filter for this method.
    pub fn method_filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}
