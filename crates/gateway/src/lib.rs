//! The network side of gander: one port and one socket for every protocol.
//!
//! `http` is what they share (guard, route table, limits, streams, TLS), `protocols` has a folder for each. Protocols ask
//! services and read logs through projections of `wire`; none of them reaches a store by itself or authorises.

pub(crate) mod framed_io;
pub mod http;
mod large_responses;
pub mod log_list;
pub(crate) mod message_framing;
mod peer;
mod percent;
pub mod protocols;
pub mod server;
pub mod settings;
pub(crate) mod spool;
pub(crate) mod spooled_bytes;
pub mod sse;
pub mod websocket;

pub use large_responses::LargeResponses;
pub use peer::ClientPeer;
