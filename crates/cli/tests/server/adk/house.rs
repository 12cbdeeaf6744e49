//! A server with agents of known behaviour, and a client for it.

pub use crate::served::answer::{Answer, said};

crate::served::house!(("GANDER_SERVER_CONFORMANCE_AGENTS", "true"));
