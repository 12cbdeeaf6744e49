//! The Agent Communication Protocol: runs begun, found, answered, cancelled and followed.

mod agents;
mod error;
mod history_import;
mod resource_urls;
pub(crate) mod routes;
mod runs;
mod sessions;
mod state;
mod stream;

use std::fmt;
use std::sync::Arc;

use gander_domain::caller::Caller;
use gander_domain::{RunOrigin, SessionId};
use gander_services::Services;
use gander_tools::Guard;
use gander_wire::acp_rest::PROTOCOL_NAME;

use error::{acp_rest_hub_refusal, acp_rest_session_refusal, acp_rest_store_refusal};
pub use resource_urls::ResourceUrls;
pub use sessions::UnknownResource;
pub use state::{AcpRestProtocol, AcpRestSettings, AcpRestState};
use stream::RunStart;
pub use stream::{AcpRestRunStream, RunEventProjection};

/// The server side of this protocol.
pub struct AcpRest {
    services: Arc<Services>,
    resources: ResourceUrls,
    guard: Guard,
    figures: agents::StatsCache,
}

/// Where the caller found us: addresses of ours begin with this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl BaseUrl {
    /// Where the caller reads what a session keeps.
    fn artifacts_url(&self, session: SessionId) -> String {
        format!("{}/acp-rest/sessions/{session}/artifacts", self.0)
    }
}

impl AcpRest {
    /// This protocol in front of these sessions.
    pub fn new(services: Arc<Services>, resources: ResourceUrls, guard: Guard) -> Self {
        Self { services, resources, guard, figures: agents::StatsCache::default() }
    }
}

impl fmt::Debug for AcpRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpRest").finish_non_exhaustive()
    }
}

fn acp_rest_run_origin(caller: &Caller) -> RunOrigin {
    RunOrigin { by: caller.principal.clone(), door: PROTOCOL_NAME.to_owned() }
}
