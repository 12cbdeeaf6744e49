//! The Agent Communication Protocol over HTTP: every route, event, state and error, against agents of known behaviour.

#![allow(clippy::unwrap_used)]

mod artifacts;
#[path = "../binary/mod.rs"]
mod binary;
mod errors;
mod house;
mod json;
mod kill;
mod routes;
mod rows;
#[path = "../served/mod.rs"]
mod served;
mod sessions;
mod witness;
