//! What the handlers of ADK share: the state of every handler, and the protocol's own.

use std::ops::Deref;
use std::sync::Arc;

use super::Adk;
use crate::http::state::HttpState;
use crate::settings::AdkSection;

/// What the handlers of ADK share. It gives the state of every handler as its target.
#[derive(Debug)]
pub struct AdkState {
    http: Arc<HttpState>,
    pub(crate) adk: Adk,
}

impl AdkState {
    pub(crate) fn new(http: &Arc<HttpState>, settings: AdkSection) -> Arc<Self> {
        let adk = Adk::new(Arc::clone(&http.services), settings);
        Arc::new(Self { http: Arc::clone(http), adk })
    }
}

impl Deref for AdkState {
    type Target = HttpState;

    fn deref(&self) -> &HttpState {
        &self.http
    }
}
