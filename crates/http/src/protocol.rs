//! What the server knows of a protocol: its routes, what its handlers share, and its form of an error that no handler worded.

use std::fmt;
use std::sync::Arc;

use axum::response::Response;

use crate::error::{Problem, RefusedRequest};
use crate::route::Route;
use crate::route_tables::ProtocolAbout;
use crate::state::HttpState;

/// A protocol over HTTP. Its line of the route table names the type that implements this, and nothing else is needed.
pub trait HttpProtocol {
    /// What its handlers share.
    type State: fmt::Debug + Send + Sync + 'static;
    /// What it is set to.
    type Settings;
    /// What it is.
    const ABOUT: ProtocolAbout;
    /// Its routes.
    const ROUTES: &'static [Route<Arc<Self::State>>];

    /// What its handlers share, in front of what all handlers share.
    fn new_state(http: &Arc<HttpState>, settings: Self::Settings) -> Arc<Self::State>;

    /// A refusal of the outer layer in the words of this protocol.
    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response;
}
