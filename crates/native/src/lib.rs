//! The native loop as a back-end, and its sub-agents as sessions of their own.

mod backend;
mod routing;
pub mod subagents;

pub use backend::Native;
