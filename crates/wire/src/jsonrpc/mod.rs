//! A JSON-RPC 2.0 peer without IO: bytes in, typed messages and an outbox of bytes out.
//!
//! [`Lines`] frames newline-delimited transports; [`Peer`] handles whole messages and does not care how they were framed.

mod error;
mod id;
mod lines;
mod message;
mod outbox;
mod peer;
mod text_check;

pub use error::{Code, Error};
pub use id::RequestId;
pub use lines::{Line, Lines, MAX_LINE};
pub use message::{Malformed, Params};
pub(crate) use outbox::write_json_to_outbox;
pub use outbox::{MessageOrigin, Outbox};
pub use peer::{Counters, Incoming, Peer, Responder};
