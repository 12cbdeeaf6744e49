//! What the handlers of ACP share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use gander_http::state::HttpState;
use gander_http::{HttpProtocol, Problem, RefusedRequest, Route};
use gander_wire::acp::AcpOptions;

use super::{Connections, error, routes};
use axum::response::Response;

/// What the handlers of ACP share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct AcpState {
    http: Arc<HttpState>,
    pub(crate) acp: Arc<Connections>,
    /// Passes requests on to other nodes.
    pub(crate) node_client: reqwest::Client,
}

impl AcpState {
    /// Connections that nobody uses are forgotten from now on until the server ends.
    pub(crate) fn new(http: &Arc<HttpState>, defaults: AcpOptions) -> Arc<Self> {
        let acp = Connections::new(Arc::clone(&http.services), Arc::clone(&http.large_responses), defaults);
        acp.spawn_sweeper(http.ending.clone());
        Arc::new(Self { http: Arc::clone(http), acp, node_client: routes::node_client() })
    }
}

/// The Agent Client Protocol over HTTP and WebSocket, as the route table has it.
#[derive(Debug)]
pub struct AcpProtocol;

impl HttpProtocol for AcpProtocol {
    type State = AcpState;
    type Settings = AcpOptions;
    const ABOUT: gander_http::ProtocolAbout = gander_http::ProtocolAbout {
        name: "acp",
        title: "Agent Client Protocol over WebSocket and HTTP",
        official: Some("https://agentclientprotocol.com"),
    };
    const ROUTES: &'static [Route<Arc<AcpState>>] = routes::ROUTES;

    fn new_state(http: &Arc<HttpState>, settings: AcpOptions) -> Arc<AcpState> {
        AcpState::new(http, settings)
    }

    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
        error::acp_outer_refusal(problem, request, response)
    }
}

impl Deref for AcpState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
