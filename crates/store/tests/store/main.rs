//! The log: what every store must do, what SQLite and PostgreSQL do besides, and kills in mid-write.
#![allow(clippy::unwrap_used)]

mod conformance;
mod copy;
mod crash;
mod postgres;
mod postgres_commands;
mod sqlite;
mod story;

/// One for all tests that stop none.
static SERVER: gander_testkit::postgres::SharedServer = gander_testkit::postgres::SharedServer::new();
