//! A2A against the real binary: every operation, state and error in each binding, both versions, kills, pushes, two protocols.

#![allow(clippy::unwrap_used)]

mod across_protocols;
mod artifacts;
mod cards;
mod errors;
mod json;
mod operations;
mod push;
mod rows;
mod streams;
mod tasks;
mod test_server;
