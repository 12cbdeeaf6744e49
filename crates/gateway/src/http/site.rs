//! What all handlers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gander_services::Services;
use gander_services::token::Tokens;
use gander_tools::Guard;
use gander_wire::acp::AcpOptions;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::host::Names;
use super::pace::Readers;
use super::panics;
use super::quota::Quotas;
use super::spool::Spool;
use crate::protocols::a2a::routes::Cards;
use crate::protocols::a2a::{A2a, Push, Signer};
use crate::protocols::acp::Connections;
use crate::protocols::acp_rest::{AcpRest, Resources};
use crate::protocols::adk::Adk;
use crate::settings::{A2aSection, AdkSection, Door, Limits, ServerSection};

/// So many answers that hold a whole session or run are made at once: each takes many times its length meanwhile.
const WHOLES: usize = 4;

/// What all handlers share.
#[derive(Debug)]
pub struct Site {
    /// What every protocol works with.
    pub services: Arc<Services>,
    pub(crate) signer: Option<Arc<Signer>>,
    /// How much is too much.
    pub limits: Limits,
    pub(crate) tokens: Tokens,
    pub(crate) open: Vec<Door>,
    pub(crate) open_approve: bool,
    pub(crate) names: Names,
    pub(crate) quotas: Quotas,
    /// Of the whole process.
    pub(crate) panics: Arc<AtomicUsize>,
    pub(crate) connections: AtomicUsize,
    pub(crate) acp: Arc<Connections>,
    pub(crate) a2a: A2a,
    pub(crate) cards: Cards,
    pub(crate) acp_rest: AcpRest,
    pub(crate) adk: Adk,
    pub(crate) streams: Arc<super::streams::Streams>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) spool: Arc<Spool>,
    /// Taken while an answer is made that holds a whole session or run.
    pub(crate) wholes: Semaphore,
    /// Cancelled when no new work is taken any more.
    pub(crate) ending: CancellationToken,
}

/// What a site is made of.
pub struct SiteParts {
    /// What every protocol works with.
    pub services: Arc<Services>,
    /// Who wants updates of A2A tasks sent where.
    pub push: Push,
    /// Who signs agent cards, if anybody does.
    pub signer: Option<Arc<Signer>>,
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
    /// Where answers wait that nobody reads yet.
    pub data: PathBuf,
    /// Who may come in.
    pub tokens: Tokens,
}

impl Site {
    /// A site in front of these services.
    pub fn new(parts: SiteParts) -> Arc<Self> {
        let SiteParts { services, push, signer, acp, server, a2a, adk, limits, data, tokens } = parts;
        let acp = Connections::new(Arc::clone(&services), acp);
        let ending = CancellationToken::new();
        acp.sweep(ending.clone());
        let resources = Resources::new(tokens.secret_for("acp_rest"), server.forward_resources);
        let peers = Guard::new(server.resource_peers.iter().cloned());
        Arc::new(Self {
            acp,
            a2a: A2a::new(Arc::clone(&services), push, &a2a),
            cards: Cards::new(&a2a),
            acp_rest: AcpRest::new(Arc::clone(&services), resources, peers),
            adk: Adk::new(Arc::clone(&services), adk),
            services,
            signer,
            tokens,
            names: Names::new(&server.allowed_hosts, &server.allowed_origins),
            open: server.open,
            open_approve: server.open_approve,
            quotas: Quotas::new(&limits),
            readers: Arc::new(Readers::new(limits.stalled_reader.0)),
            limits,
            panics: panics::count_panics(),
            connections: AtomicUsize::new(0),
            streams: Arc::default(),
            wholes: Semaphore::new(WHOLES),
            spool: Arc::new(Spool::new(data)),
            ending,
        })
    }

    /// The turn to make an answer that holds a whole session or run.
    pub(crate) async fn whole(&self) -> Option<SemaphorePermit<'_>> {
        self.wholes.acquire().await.ok()
    }

    /// From now on no new work is taken.
    pub fn drain(&self) {
        self.ending.cancel();
    }

    /// True if no new work is taken.
    pub fn draining(&self) -> bool {
        self.ending.is_cancelled()
    }
}
