//! The agent that a goosed runs, against one on loopback: sessions, turns, questions, and everything that can fail.

#![allow(clippy::unwrap_used)]

mod house;
mod sessions;
mod turns;
