//! What all handlers share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use gander_agent::tools::Guard;
use tokio_util::sync::CancellationToken;

use super::host::Names;
use super::quota::Quotas;
use crate::app::App;
use crate::config::{Config, Door, Limits};
use crate::door::acp_rest::{AcpRest, Resources};
use crate::door::adk::Adk;
use crate::token::Tokens;

/// What all handlers share.
#[derive(Debug)]
pub struct Site {
    /// Everything behind the door.
    pub app: Arc<App>,
    /// How much is too much.
    pub limits: Limits,
    pub(super) tokens: Tokens,
    pub(super) open: Vec<Door>,
    pub(super) names: Names,
    pub(super) quotas: Quotas,
    pub(super) panics: AtomicUsize,
    pub(super) connections: AtomicUsize,
    pub(super) acp: Arc<crate::door::acp::Connections>,
    pub(super) a2a: crate::door::a2a::A2a,
    pub(super) cards: super::a2a::Cards,
    pub(super) acp_rest: AcpRest,
    pub(super) adk: Adk,
    pub(super) streams: Arc<super::streams::Streams>,
    /// Cancelled when no new work is taken any more.
    pub(super) ending: CancellationToken,
}

impl Site {
    /// A site in front of this application.
    pub fn new(app: Arc<App>, config: &Config, tokens: Tokens) -> Arc<Self> {
        let server = &config.sections.server;
        let limits = config.sections.limits.clone();
        let acp = crate::door::acp::Connections::new(Arc::clone(app.desk()));
        let ending = CancellationToken::new();
        acp.sweep(ending.clone());
        Arc::new(Self {
            acp,
            a2a: crate::door::a2a::A2a::new(Arc::clone(app.desk()), app.push().clone(), &config.sections.a2a),
            cards: super::a2a::Cards::new(config),
            acp_rest: acp_rest(&app, config, &tokens),
            adk: Adk::new(Arc::clone(app.desk()), config.sections.adk.clone()),
            app,
            tokens,
            open: server.open.clone(),
            names: Names::new(&server.allowed_hosts, &server.allowed_origins),
            quotas: Quotas::new(&limits),
            limits,
            panics: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            streams: Arc::default(),
            ending,
        })
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

fn acp_rest(app: &App, config: &Config, tokens: &Tokens) -> AcpRest {
    let server = &config.sections.server;
    let resources = Resources::new(tokens.secret_for("acp_rest"), server.forward_resources);
    AcpRest::new(Arc::clone(app.desk()), resources, Guard::new(server.resource_peers.iter().cloned()))
}
