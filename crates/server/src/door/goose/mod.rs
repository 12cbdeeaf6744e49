//! What goose clients find here: sessions as goose's objects, its settings and providers, its extension methods.

mod book;
mod config;
mod methods;
mod providers;
mod sessions;

pub use book::{Book, Shelf};
pub use config::preset;
pub use methods::call;
