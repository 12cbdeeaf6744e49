//! What goose clients find here: sessions as goose's objects, its settings and providers, its extension methods.

pub mod chat;
pub mod config;
pub mod extensions;
mod methods;
mod prepared;
pub mod providers;
pub mod recipes;
pub(crate) mod routes;
pub mod sessions;
pub mod telling;

pub use config::preset;
pub use methods::{call, commands};
