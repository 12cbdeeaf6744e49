//! What the handlers of ADK share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use super::settings::AdkSection;
use super::{Adk, error, routes};
use axum::response::Response;
use gander_http::state::HttpState;
use gander_http::{HttpProtocol, Problem, RefusedRequest, Route};

/// What the handlers of ADK share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct AdkState {
    http: Arc<HttpState>,
    pub(crate) adk: Adk,
}

impl AdkState {
    pub(crate) fn new(http: &Arc<HttpState>, settings: AdkSection) -> Arc<Self> {
        let adk = Adk::new(Arc::clone(&http.services), settings);
        Arc::new(Self { http: Arc::clone(http), adk })
    }
}

/// The Agent Development Kit's REST API, as the route table has it.
#[derive(Debug)]
pub struct AdkProtocol;

impl HttpProtocol for AdkProtocol {
    type State = AdkState;
    type Settings = AdkSection;
    const ABOUT: gander_http::ProtocolAbout = gander_http::ProtocolAbout {
        name: "adk",
        title: "Agent Development Kit's REST",
        official: Some("https://google.github.io/adk-docs/"),
    };
    const ROUTES: &'static [Route<Arc<AdkState>>] = routes::ROUTES;

    fn new_state(http: &Arc<HttpState>, settings: AdkSection) -> Arc<AdkState> {
        AdkState::new(http, settings)
    }

    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
        error::adk_outer_refusal(problem, request, response)
    }
}

impl Deref for AdkState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
