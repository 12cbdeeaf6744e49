//! What goose clients find here: sessions as goose's objects, its settings and providers, its extension methods.

pub mod config;
mod error;
mod extension_methods;
pub mod extensions;
mod method_params;
pub mod providers;
mod recipe_methods;
pub mod recipes;
mod reply_projection;
pub(crate) mod routes;
pub mod runs;
pub mod session_events;
pub mod sessions;
mod state;
mod stream;
pub mod tools;

/// What the clients of goose's REST are called: they do not say it themselves.
const CLIENT_NAME: &str = "goose client";

pub use config::apply_goose_config;
pub use extension_methods::handle_goose_method;
pub use state::GooseProtocol;
