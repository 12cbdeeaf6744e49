//! The log: what every store must do, what SQLite does besides, and kills in mid-write.
#![allow(clippy::unwrap_used)]

mod conformance;
mod crash;
mod sqlite;
mod story;
