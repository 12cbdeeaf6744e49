//! The gander server: one data directory, one log, every door.

pub mod app;
pub mod apps;
pub mod artifacts;
pub mod backend;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod door;
pub mod exchange;
pub mod extensions;
pub mod grants;
pub mod http;
pub mod hub;
pub mod log;
pub mod memory;
pub mod models;
pub mod output;
pub mod paths;
pub mod recipes;
pub mod sandbox;
pub mod schedules;
pub mod sse;
pub mod state;
pub mod token;
pub mod toolset;
pub mod trace;
pub mod trust;
pub mod vault;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
