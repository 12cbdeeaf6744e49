//! What all handlers and the guard share, whatever the protocol.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use gander_services::Services;
use gander_services::browser_access::BrowserAccess;
use gander_services::token::Tokens;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::openapi::RouteTables;
use super::origin_check::OriginCheck;
use super::paced_body::StalledReaders;
use super::panics;
use super::rate_limit::RateLimiter;
use super::spool::Spool;
use super::stream_limits::StreamLimiter;
use crate::settings::{Limits, OpenProtocol, ServerSection};

/// So many responses that hold a whole session or run are made at once: each takes many times its length meanwhile.
const MAX_WHOLE_RESPONSES: usize = 4;

/// Who waits longer for the permit to be made such a response is told to come back.
const WHOLE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Too many responses that hold a whole session or run are being made.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many large answers are being made, try again in a moment")]
pub(crate) struct TooManyWholeResponses;

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
    pub(crate) spool: Arc<Spool>,
    /// Taken while a response is made that holds a whole session or run.
    pub(crate) whole_responses: Semaphore,
    /// Cancelled when no new work is taken any more.
    pub(crate) ending: CancellationToken,
}

/// What the shared state is made of.
pub(crate) struct HttpParts {
    pub(crate) services: Arc<Services>,
    pub(crate) server: ServerSection,
    pub(crate) limits: Limits,
    /// The folder of responses that nobody reads yet.
    pub(crate) data: PathBuf,
    pub(crate) tokens: Tokens,
    pub(crate) browsers: BrowserAccess,
    pub(crate) api: RouteTables,
}

impl HttpState {
    pub(crate) fn new(parts: HttpParts) -> Arc<Self> {
        let HttpParts { services, server, limits, data, tokens, browsers, api } = parts;
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
            whole_responses: Semaphore::new(MAX_WHOLE_RESPONSES),
            spool: Arc::new(Spool::new(data)),
            ending: CancellationToken::new(),
        })
    }

    /// Waits for the permit to make a response that holds a whole session or run.
    pub(crate) async fn whole_response_permit(&self) -> Result<SemaphorePermit<'_>, TooManyWholeResponses> {
        let permit = tokio::time::timeout(WHOLE_RESPONSE_TIMEOUT, self.whole_responses.acquire()).await;
        permit.map_err(|_| TooManyWholeResponses)?.map_err(|_| TooManyWholeResponses)
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
