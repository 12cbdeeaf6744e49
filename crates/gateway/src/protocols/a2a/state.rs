//! What the handlers of A2A share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use axum::response::Response;
use gander_http::state::HttpState;
use gander_http::{HttpProtocol, Problem, RefusedRequest, Route};

use super::settings::{A2aSection, A2aSettings, CardSettings};
use super::{A2a, CardSigner, PushNotifications, error, routes};

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
