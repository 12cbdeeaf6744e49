//! The policy of the settings as it is at this moment: they may change while a session runs.

use std::fmt;
use std::sync::Arc;

use gander_domain::Policy;

/// Where the policy of the settings is read, at each decision anew.
#[derive(Clone)]
pub struct LivePolicy(Arc<dyn Fn() -> Policy + Send + Sync>);

impl LivePolicy {
    /// The policy that this gives.
    pub fn new(read: impl Fn() -> Policy + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The policy of now.
    pub fn current_policy(&self) -> Policy {
        (self.0)()
    }
}

/// One that does not change.
impl From<Policy> for LivePolicy {
    fn from(policy: Policy) -> Self {
        Self::new(move || policy)
    }
}

impl fmt::Debug for LivePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LivePolicy").field(&self.current_policy()).finish()
    }
}
