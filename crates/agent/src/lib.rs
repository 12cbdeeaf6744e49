//! The native agent: a pure turn machine, the driver that does its IO, models, tools and permissions.
//!
//! It is one back-end among others: `Order`s come in, `Report`s go out. [`turn::Turn`] decides, [`driver::drive`]
//! does. Nothing here knows a protocol of a door or writes a log.

pub mod compact;
pub mod context_files;
pub mod decompose;
pub mod delegate;
pub mod driver;
pub mod front_matter;
pub mod modes;
pub mod prompt;
mod propose;
pub mod recipe;
pub mod recipe_run;
pub mod route;
mod run_task;
mod settings;
pub mod title;
mod toolbox;
pub mod turn;

pub use run_task::RunTask;
pub use settings::AgentSettings;
pub use toolbox::native_toolbox;
