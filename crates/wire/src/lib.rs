//! Protocols as pure functions: a request becomes a `Command`, a log entry becomes wire bytes. No runtime, no sockets, no clock.

pub mod a2a;
pub mod acp;
pub mod acp_rest;
pub mod adk;
pub mod answer;
pub mod check;
pub mod goose;
pub mod inspect;
pub mod json_check;
pub mod jsonrpc;
mod key_case;
mod preview;
pub mod remote;
pub mod saved_artifact;
pub mod slash_command_list;
pub mod sse;
