//! What goosed had and this server has not: said, not pretended.

use http::StatusCode;

use super::{GooseCaller, HandlerResult};
use crate::protocols::goose::error::GooseError;

/// A route of goosed that nothing stands behind.
pub(crate) async fn refuse_unsupported(_caller: GooseCaller) -> HandlerResult {
    Err(GooseError::new(StatusCode::NOT_IMPLEMENTED, "this server does not offer that"))
}
