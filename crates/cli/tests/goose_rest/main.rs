//! goose's REST against the real router: every route, both ways to chat, and what is refused.
#![allow(clippy::unwrap_used)]

mod bad;
mod built_in;
mod chat;
mod folders;
mod house;
mod routes;
mod schedules;
#[path = "../served/mod.rs"]
mod served;
mod shapes;
mod switched;
mod tools;

/// Not a test: the MCP server that others start, when this executable is started as one.
#[test]
fn server() {
    gander_testkit::mcp::serve_if_asked();
}
