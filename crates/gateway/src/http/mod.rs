//! The door to the network: one router built from one table, behind one guard, on an own accept loop.

pub(crate) mod accept;
pub(crate) mod artifact;
pub(crate) mod body;
pub(crate) mod error;
pub(crate) mod flood;
pub(crate) mod form;
pub(crate) mod framing;
pub(crate) mod front;
pub(crate) mod host;
pub(crate) mod own;
pub(crate) mod pace;
pub(crate) mod panics;
pub(crate) mod quota;
pub(crate) mod refusal;
pub(crate) mod routes;
pub(crate) mod site;
pub(crate) mod spool;
pub(crate) mod sse;
pub(crate) mod streams;
pub(crate) mod tls;
pub(crate) mod websocket;
pub(crate) mod written;

pub use accept::{Address, serve, serve_with};
pub use error::problem;
pub use routes::{Access, Payload, ROUTES, Route, Serve, Size, Verb, router};
pub use site::{Site, SiteParts};
pub use tls::{SelfSigned, TlsError};
