//! goose's REST API, as the route table has it. Its handlers share nothing of their own.

use std::sync::Arc;

use axum::response::Response;
use gander_http::{HttpProtocol, HttpState, Problem, RefusedRequest, Route};

use super::{error, routes};

/// goose's REST API.
#[derive(Debug)]
pub struct GooseProtocol;

impl HttpProtocol for GooseProtocol {
    type State = HttpState;
    type Settings = ();
    const ABOUT: gander_http::ProtocolAbout = gander_http::ProtocolAbout {
        name: "goose",
        title: "goose's REST",
        official: Some("https://github.com/block/goose"),
    };
    const ROUTES: &'static [Route<Arc<HttpState>>] = routes::ROUTES;

    fn new_state(http: &Arc<HttpState>, (): ()) -> Arc<HttpState> {
        Arc::clone(http)
    }

    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
        error::goose_outer_refusal(problem, request, response)
    }
}
