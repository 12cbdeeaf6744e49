//! What the handlers of A2A share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use gander_http::state::HttpState;
use gander_http::{HttpProtocol, Problem, RefusedRequest, Route};
use jiff::Timestamp;

use super::settings::A2aSection;
use super::{A2a, CardSigner, PushNotifications, error, routes};
use axum::response::Response;

/// What the handlers of A2A share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct A2aState {
    http: Arc<HttpState>,
    pub(crate) a2a: A2a,
    pub(crate) cards: CardSettings,
    pub(crate) signer: Option<Arc<CardSigner>>,
}

impl A2aState {
    pub(crate) fn new(
        http: &Arc<HttpState>,
        push: PushNotifications,
        signer: Option<Arc<CardSigner>>,
        settings: &A2aSection,
    ) -> Arc<Self> {
        let a2a = A2a::new(Arc::clone(&http.services), push, settings);
        Arc::new(Self { http: Arc::clone(http), a2a, cards: CardSettings::new(settings), signer })
    }
}

/// What A2A is set to, and what was opened for it.
pub struct A2aSettings {
    /// Its section of the settings.
    pub section: A2aSection,
    /// Who wants updates of tasks sent where.
    pub push: PushNotifications,
    /// Who signs agent cards, if anybody does.
    pub signer: Option<Arc<CardSigner>>,
}

/// What all cards have in common.
#[derive(Debug)]
pub(crate) struct CardSettings {
    /// The address under which others know this server, if that is not what they call it.
    pub(super) public_url: Option<String>,
    pub(super) grpc: bool,
    pub(super) v03: bool,
    pub(super) since: Timestamp,
}

impl CardSettings {
    /// As the settings say.
    pub(crate) fn new(a2a: &A2aSection) -> Self {
        Self { public_url: a2a.public_url.clone(), grpc: a2a.grpc, v03: a2a.v03, since: Timestamp::now() }
    }

    /// True if gRPC is spoken.
    pub(crate) fn grpc(&self) -> bool {
        self.grpc
    }
}

/// A2A in its three bindings, as the route table has it.
#[derive(Debug)]
pub struct A2aProtocol;

impl HttpProtocol for A2aProtocol {
    type State = A2aState;
    type Settings = A2aSettings;
    const ABOUT: gander_http::ProtocolAbout = gander_http::ProtocolAbout {
        name: "a2a",
        title: "Agent2Agent",
        official: Some("https://a2a-protocol.org/latest/specification/"),
    };
    const ROUTES: &'static [Route<Arc<A2aState>>] = routes::ROUTES;

    fn new_state(http: &Arc<HttpState>, settings: A2aSettings) -> Arc<A2aState> {
        let A2aSettings { section, push, signer } = settings;
        A2aState::new(http, push, signer, &section)
    }

    fn word_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
        error::a2a_outer_refusal(problem, request, response)
    }
}

impl Deref for A2aState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
