//! The gander server as a library: one data directory, one log, every protocol.
//!
//! [`app::App`] is the composition of all parts; the binary only reads its command line, builds one and prints.

pub mod app;
pub mod backup;
pub mod config;
pub mod daemon;
pub mod sandbox;

pub use gander_services::VERSION;
