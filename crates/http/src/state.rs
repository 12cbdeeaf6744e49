//! What all handlers and the guard share, whatever the protocol.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gander_services::Services;
use gander_services::browser_access::BrowserAccess;
use gander_services::token::Tokens;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::large_responses::{LargeResponses, TooManyWholeResponses};
use crate::origin_check::OriginCheck;
use crate::panics;
use crate::rate_limit::RateLimiter;
use crate::route_tables::RouteTables;
use crate::settings::{Limits, OpenProtocol, ServerSection};
use crate::stalled_readers::StalledReaders;
use crate::stream_limits::StreamLimiter;

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
    pub api: RouteTables,
    pub open: Vec<OpenProtocol>,
    pub open_approve: bool,
    pub names: OriginCheck,
    pub quotas: RateLimiter,
    /// Of the whole process.
    pub panics: Arc<AtomicUsize>,
    pub connections: AtomicUsize,
    pub streams: Arc<StreamLimiter>,
    pub readers: Arc<StalledReaders>,
    pub large_responses: Arc<LargeResponses>,
    /// Cancelled when no new work is taken any more.
    pub ending: CancellationToken,
}

/// What the shared state is made of.
pub struct HttpParts {
    pub services: Arc<Services>,
    pub server: ServerSection,
    pub limits: Limits,
    pub large_responses: Arc<LargeResponses>,
    pub tokens: Tokens,
    pub browsers: BrowserAccess,
    pub api: RouteTables,
}

impl HttpState {
    pub fn new(parts: HttpParts) -> Arc<Self> {
        let HttpParts { services, server, limits, large_responses, tokens, browsers, api } = parts;
        let quotas = RateLimiter::new(&limits, Arc::clone(&services.nodes));
        Arc::new(Self {
            services,
            tokens,
            browsers,
            api,
            names: OriginCheck::new(&server.allowed_hosts, &server.allowed_origins),
            open: server.open,
            open_approve: server.open_approve,
            quotas,
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
    pub async fn whole_response_permit(&self) -> Result<OwnedSemaphorePermit, TooManyWholeResponses> {
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
