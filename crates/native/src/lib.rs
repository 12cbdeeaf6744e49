//! The native loop as a back-end, and its sub-agents as sessions of their own.

mod backend;
mod native;
mod native_run;
mod routing;
pub mod subagents;

pub use native::{Native, RunSettings};
