//! The server side of every protocol, on one port and one socket.
//!
//! `protocols` has a folder for each, `server` puts their routes together; what they share of HTTP is the crate `http`. Protocols
//! ask services and read logs through projections of `wire`; none of them reaches a store by itself or authorises.

mod json_stream;
pub mod log_list;
mod peer;
pub mod protocols;
mod rejection;
pub mod server;

pub use peer::ClientPeer;
