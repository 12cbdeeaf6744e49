//! MCP servers in front of a scripted one: everything a real server may do, and worse.
#![allow(clippy::unwrap_used)]

mod lives;
mod login;
mod says;
mod shared;
mod test_server;
mod tools;
mod web;

/// Not a test: the server that the others start, when this executable is started as one.
#[test]
fn server() {
    gander_testkit::mcp::serve_if_asked();
}
