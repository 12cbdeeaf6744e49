//! The agent that a goosed runs, against one on loopback: sessions, turns, questions, and everything that can fail.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod gander;
mod sessions;
mod test_server;
mod turns;
