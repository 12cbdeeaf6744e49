//! What all handlers and the guard share, whatever the protocol.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gander_services::Services;
use gander_services::browser_access::BrowserAccess;
use gander_services::token::Tokens;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::openapi::RouteTables;
use super::origin_check::OriginCheck;
use super::paced_body::StalledReaders;
use super::panics;
use super::rate_limit::RateLimiter;
use super::stream_limits::StreamLimiter;
use crate::large_responses::{LargeResponses, TooManyWholeResponses};
use crate::settings::{Limits, OpenProtocol, ServerSection};

/// What all handlers share.
#[derive(Debug)]
pub struct HttpState {
    /// What every protocol works with.
    pub services: Arc<Services>,
    /// How much is too much.
    pub limits: Limits,
    /// Who may come in.
    pub tokens: Tokens,
    /// Which browsers may, for which of the tokens.
    pub browsers: BrowserAccess,
    /// Every route and protocol there is, for their description.
    pub(crate) api: RouteTables,
    pub(crate) open: Vec<OpenProtocol>,
    pub(crate) open_approve: bool,
    pub(crate) names: OriginCheck,
    pub(crate) quotas: RateLimiter,
    /// Of the whole process.
    pub(crate) panics: Arc<AtomicUsize>,
    pub(crate) connections: AtomicUsize,
    pub(crate) streams: Arc<StreamLimiter>,
    pub(crate) readers: Arc<StalledReaders>,
    pub(crate) large_responses: Arc<LargeResponses>,
    /// Cancelled when no new work is taken any more.
    pub(crate) ending: CancellationToken,
}

/// What the shared state is made of.
pub(crate) struct HttpParts {
    pub(crate) services: Arc<Services>,
    pub(crate) server: ServerSection,
    pub(crate) limits: Limits,
    pub(crate) large_responses: Arc<LargeResponses>,
    pub(crate) tokens: Tokens,
    pub(crate) browsers: BrowserAccess,
    pub(crate) api: RouteTables,
}

impl HttpState {
    pub(crate) fn new(parts: HttpParts) -> Arc<Self> {
        let HttpParts { services, server, limits, large_responses, tokens, browsers, api } = parts;
        Arc::new(Self {
            services,
            tokens,
            browsers,
            api,
            names: OriginCheck::new(&server.allowed_hosts, &server.allowed_origins),
            open: server.open,
            open_approve: server.open_approve,
            quotas: RateLimiter::new(&limits),
            readers: Arc::new(StalledReaders::new(limits.stalled_reader.0)),
            limits,
            panics: panics::count_panics(),
            connections: AtomicUsize::new(0),
            streams: Arc::default(),
            large_responses,
            ending: CancellationToken::new(),
        })
    }

    /// Waits for the permit to make a response that holds a whole session or run.
    pub(crate) async fn whole_response_permit(&self) -> Result<OwnedSemaphorePermit, TooManyWholeResponses> {
        self.large_responses.permit().await
    }

    /// From now on no new work is taken.
    pub fn drain(&self) {
        self.ending.cancel();
    }

    /// True if no new work is taken.
    pub fn is_draining(&self) -> bool {
        self.ending.is_cancelled()
    }
}
