//! What the handlers of ACP-REST share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use gander_http::state::HttpState;
use gander_http::{HttpProtocol, Problem, RefusedRequest, Route};
use gander_tools::Guard;

use super::{AcpRest, ResourceUrls, error, routes};
use axum::response::Response;

/// What the handlers of ACP-REST share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct AcpRestState {
    http: Arc<HttpState>,
    pub(crate) acp_rest: AcpRest,
}

/// What ACP-REST is set to.
#[derive(Clone, Debug)]
pub struct AcpRestSettings {
    /// Can messages of sessions be read by their address alone?
    pub forward_resources: bool,
    /// Where histories of sessions may be fetched, besides public addresses.
    pub resource_peers: Vec<String>,
}

impl AcpRestState {
    pub(crate) fn new(http: &Arc<HttpState>, resources: ResourceUrls, peers: Guard) -> Arc<Self> {
        let acp_rest = AcpRest::new(Arc::clone(&http.services), resources, peers);
        Arc::new(Self { http: Arc::clone(http), acp_rest })
    }
}

/// The Agent Communication Protocol, as the route table has it.
#[derive(Debug)]
pub struct AcpRestProtocol;

impl HttpProtocol for AcpRestProtocol {
    type State = AcpRestState;
    type Settings = AcpRestSettings;
    const ABOUT: gander_http::ProtocolAbout = gander_http::ProtocolAbout {
        name: "acp-rest",
        title: "Agent Communication Protocol",
        official: Some("https://agentcommunicationprotocol.dev"),
    };
    const ROUTES: &'static [Route<Arc<AcpRestState>>] = routes::ROUTES;

    fn new_state(http: &Arc<HttpState>, settings: AcpRestSettings) -> Arc<AcpRestState> {
        let resources = ResourceUrls::new(http.tokens.secret_for("acp_rest"), settings.forward_resources);
        AcpRestState::new(http, resources, Guard::new(settings.resource_peers))
    }

    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
        error::acp_rest_outer_refusal(problem, request, response)
    }
}

impl Deref for AcpRestState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
