//! A server with agents of known behaviour, and a client for it.

pub use crate::served::answer::{Answer, said};

crate::served::test_server!(crate::served::CONFORMANCE_AGENTS);
