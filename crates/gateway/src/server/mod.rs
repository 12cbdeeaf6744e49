//! The protocols put together behind one guard: what their handlers share, the route table and the router.

mod own_routes;
mod router;

use std::sync::Arc;

use gander_http::large_responses::LargeResponses;
use gander_http::settings::{Limits, ServerSection};
use gander_http::state::{HttpParts, HttpState};
use gander_services::Services;
use gander_services::browser_access::BrowserAccess;
use gander_services::token::Tokens;

pub use self::own_routes::{BadRoute, OwnRoute, RouteAccess, router_with_routes};
use self::router::{ABOUT, ProtocolStates};
pub use self::router::{ProtocolSettings, ROUTES, guarded_test_router, router};

/// Every protocol's server side.
#[derive(Debug)]
pub struct Gateway {
    /// What every handler shares.
    pub http: Arc<HttpState>,
    pub(crate) protocols: ProtocolStates,
}

/// What a gateway is made of.
pub struct GatewayParts {
    /// What every protocol works with.
    pub services: Arc<Services>,
    /// The network.
    pub server: ServerSection,
    /// What each protocol is set to.
    pub protocols: ProtocolSettings,
    /// How much is too much.
    pub limits: Limits,
    /// What it shares with clients that come another way.
    pub large_responses: Arc<LargeResponses>,
    /// Who may come in.
    pub tokens: Tokens,
    /// Which browsers may.
    pub browsers: BrowserAccess,
}

impl Gateway {
    /// A gateway in front of these services.
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let GatewayParts { services, server, protocols, limits, large_responses, tokens, browsers } = parts;
        let api = (ROUTES, ABOUT);
        let http = HttpState::new(HttpParts { services, server, limits, large_responses, tokens, browsers, api });
        Arc::new(Self { protocols: ProtocolStates::new(&http, protocols), http })
    }

    /// From now on no new work is taken.
    pub fn drain(&self) {
        self.http.drain();
    }
}
