//! The server and its binary from outside: every protocol, command and setting. One target, so that it is linked once.
//!
//! Helpers: `served` is a server in this process, `binary` runs the program, `frames` speaks HTTP/2 frame by frame.

mod a2a;
mod acp_net;
mod acp_pipe;
mod acp_rest;
mod acp_sessions;
mod adk;
mod agent_confinement;
mod agent_kills;
mod agent_offers;
mod agent_words;
mod agents;
mod all_protocols;
mod artifacts;
mod audio;
mod audit;
mod backup;
mod bad_input;
mod binary;
mod browser;
mod cli;
mod client;
mod client_methods;
mod completion;
mod config;
mod daemon;
mod default_settings;
mod deletion;
mod docs;
mod editor;
mod extension_trial;
mod extensions;
mod frames;
mod goose;
mod goose_rest;
mod goosed;
mod http;
mod http2;
mod live_settings;
mod many_sockets;
mod modes;
mod oidc;
mod outer;
mod own_settings;
mod papers;
mod permission_preview;
mod planted_secrets;
mod protected_files;
mod proxy_adk;
mod recipes;
mod replaced_server;
mod rest_rows;
mod scopes;
mod second_prompt;
mod semantics;
mod served;
mod server_command;
mod session_history;
mod tls;
mod traces;
mod unanswered;
mod untrusted_protocols;
mod untrusted_text;
mod upgrade;
mod workspaces;

/// Not a test: the MCP server that others start, when this executable is started as one.
#[test]
fn server() {
    gander_testkit::mcp::serve_if_asked();
}
