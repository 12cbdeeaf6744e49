//! The gander server: one data directory, one log, every door.

pub mod app;
pub mod backend;
pub mod clock;
pub mod config;
pub mod hub;
pub mod log;
pub mod paths;
pub mod token;
