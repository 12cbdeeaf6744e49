//! The Agent Communication Protocol over HTTP: every route, event, state and error, against agents of known behaviour.

#![allow(clippy::unwrap_used)]

mod artifacts;
mod dialect;
mod errors;
mod json;
mod kill;
mod recorder;
mod routes;
mod rows;
mod sessions;
mod test_server;
