//! The protocols put together behind one guard: what their handlers share, the route table and the router.

mod refusals;
mod routes;

use std::path::PathBuf;
use std::sync::Arc;

use gander_services::Services;
use gander_services::browser_access::BrowserAccess;
use gander_services::token::Tokens;
use gander_tools::Guard;
use gander_wire::acp::AcpOptions;

pub use self::routes::{ROUTES, router, router_for_routes};
use crate::http::state::{HttpParts, HttpState};
use crate::protocols::a2a::{A2aState, CardSigner, PushNotifications};
use crate::protocols::acp::AcpState;
use crate::protocols::acp_rest::{AcpRestState, ResourceUrls};
use crate::protocols::adk::AdkState;
use crate::settings::{A2aSection, AdkSection, Limits, ServerSection};

/// Every protocol's server side.
#[derive(Debug)]
pub struct Gateway {
    /// What every handler shares.
    pub http: Arc<HttpState>,
    pub(crate) acp: Arc<AcpState>,
    pub(crate) a2a: Arc<A2aState>,
    pub(crate) acp_rest: Arc<AcpRestState>,
    pub(crate) adk: Arc<AdkState>,
}

/// What a gateway is made of.
pub struct GatewayParts {
    /// What every protocol works with.
    pub services: Arc<Services>,
    /// Who wants updates of A2A tasks sent where.
    pub push: PushNotifications,
    /// Who signs agent cards, if anybody does.
    pub signer: Option<Arc<CardSigner>>,
    /// How ACP clients are spoken to that ask for nothing else.
    pub acp: AcpOptions,
    /// The network.
    pub server: ServerSection,
    /// A2A.
    pub a2a: A2aSection,
    /// ADK.
    pub adk: AdkSection,
    /// How much is too much.
    pub limits: Limits,
    /// The folder of responses that nobody reads yet.
    pub data: PathBuf,
    /// Who may come in.
    pub tokens: Tokens,
    /// Which browsers may.
    pub browsers: BrowserAccess,
}

impl Gateway {
    /// A gateway in front of these services.
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let GatewayParts { services, push, signer, acp, server, a2a, adk, limits, data, tokens, browsers } = parts;
        let resources = ResourceUrls::new(tokens.secret_for("acp_rest"), server.forward_resources);
        let peers = Guard::new(server.resource_peers.iter().cloned());
        let http = HttpState::new(HttpParts { services, server, limits, data, tokens, browsers });
        Arc::new(Self {
            acp: AcpState::new(&http, acp),
            a2a: A2aState::new(&http, push, signer, &a2a),
            acp_rest: AcpRestState::new(&http, resources, peers),
            adk: AdkState::new(&http, adk),
            http,
        })
    }

    /// From now on no new work is taken.
    pub fn drain(&self) {
        self.http.drain();
    }
}
