//! What goosed had and this server has not: said, not pretended.

use http::StatusCode;

use super::{Answer, Caller, Fault};

/// A route of goosed that nothing stands behind.
pub(crate) async fn not_here(_caller: Caller) -> Answer {
    Err(Fault::new(StatusCode::NOT_IMPLEMENTED, "this server does not offer that"))
}
