//! What goose clients find here: sessions as goose's objects, its settings and providers, its extension methods.

mod book;
pub mod chat;
pub mod config;
pub mod extensions;
mod methods;
mod prepared;
pub mod providers;
pub mod recipes;
pub mod sessions;
pub mod telling;

pub use book::{Book, Shelf};
pub use config::preset;
pub use methods::{call, commands};
