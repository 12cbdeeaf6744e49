//! The one server of a data directory: its socket, how clients find it, start it and attach to it.

mod attach;
mod controls;
mod handshake;
mod listener;
mod server;
mod signals;
mod spawn;
mod tickets;

pub use attach::{AttachError, Attached, attach_to_server, connect_to_attach, stop_attached_server};
pub use handshake::{Hello, HelloError, Want, Welcome};
pub use server::{End, Server, ServerError, Start, listen_security};
pub use signals::Signals;
