//! ACP over WebSocket and streamable HTTP at the real binary: one session, many clients, any transport.

mod bad;
mod bridge;
mod crowd;
mod cuts;
pub(crate) mod dialects;
mod http;
mod rows;
mod socket;
mod sockets;
mod streams;
pub(crate) mod test_server;
