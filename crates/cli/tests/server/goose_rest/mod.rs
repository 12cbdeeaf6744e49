//! goose's REST against the real router: every route, both ways to chat, and what is refused.
#![allow(clippy::unwrap_used)]

mod bad;
mod built_in;
mod chat;
mod details;
mod folders;
mod replaced;
mod routes;
mod schedules;
mod shapes;
mod switched;
mod test_server;
mod tools;
mod versions;
