//! Protocols as pure functions: a request becomes a `Command`, a log entry becomes wire bytes. No runtime, no sockets, no clock.

pub mod a2a;
pub mod acp;
pub mod acp_rest;
pub mod adk;
pub mod artifact;
pub mod check;
pub mod goose;
pub mod jsonrpc;
pub mod sse;
pub mod strict;
