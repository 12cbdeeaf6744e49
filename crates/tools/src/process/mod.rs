//! Commands as processes: started, watched, and ended with everything they started.

pub(crate) mod command;
pub(crate) mod environment;
pub mod family;
pub(crate) mod output;
pub(crate) mod spawn;
pub(crate) mod watchdog;
