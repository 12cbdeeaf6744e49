//! The door to the network: one router built from one table, behind one guard, on an own accept loop.

mod a2a;
mod accept;
mod acp;
mod acp_rest;
mod adk;
mod artifact;
mod body;
mod error;
mod flood;
mod front;
mod goose;
mod host;
mod own;
mod quota;
mod refusal;
mod routes;
mod site;
mod sse;
mod streams;
mod tls;
mod websocket;

pub use accept::{Address, serve, serve_with};
pub use error::problem;
pub use routes::{Access, Payload, ROUTES, Route, Serve, Size, Verb, router};
pub use site::Site;
pub use tls::{SelfSigned, TlsError};
