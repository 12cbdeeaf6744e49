//! What the handlers of ACP-REST share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use gander_tools::Guard;

use super::{AcpRest, ResourceUrls};
use crate::http::state::HttpState;

/// What the handlers of ACP-REST share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct AcpRestState {
    http: Arc<HttpState>,
    pub(crate) acp_rest: AcpRest,
}

impl AcpRestState {
    pub(crate) fn new(http: &Arc<HttpState>, resources: ResourceUrls, peers: Guard) -> Arc<Self> {
        let acp_rest = AcpRest::new(Arc::clone(&http.services), resources, peers);
        Arc::new(Self { http: Arc::clone(http), acp_rest })
    }
}

impl Deref for AcpRestState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
