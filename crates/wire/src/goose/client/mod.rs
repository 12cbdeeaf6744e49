//! The other side of goose's REST: what a running goosed is told, and what its stream reports.

pub mod request;
mod status;
mod turn;

pub use status::{GoosedError, goosed_status_retry_pause};
pub use turn::{GoosedRequest, GoosedTurn};

/// Under this name a message keeps the ids that a goosed gave to its tool calls.
const PAYLOAD_NAME: &str = "goosed";
