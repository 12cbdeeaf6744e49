//! Commands as processes: started, watched, and ended with everything they started.

pub(crate) mod command;
pub(crate) mod command_output;
pub mod process_tree;
pub(crate) mod spawn;
pub(crate) mod watchdog;
