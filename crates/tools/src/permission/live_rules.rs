//! The owner's rules as they are at this moment: settings may change while a session runs.

use std::fmt;
use std::sync::Arc;

use super::Rule;

/// Where the rules are read, at each decision anew.
#[derive(Clone)]
pub struct LiveRules(Arc<dyn Fn() -> Arc<[Rule]> + Send + Sync>);

impl LiveRules {
    /// Rules that this gives.
    pub fn new(read: impl Fn() -> Arc<[Rule]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The rules of now.
    pub fn current_rules(&self) -> Arc<[Rule]> {
        (self.0)()
    }
}

/// Rules that do not change; none by default.
impl<R: Into<Arc<[Rule]>>> From<R> for LiveRules {
    fn from(rules: R) -> Self {
        let rules = rules.into();
        Self::new(move || Arc::clone(&rules))
    }
}

impl fmt::Debug for LiveRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveRules").field(&self.current_rules().len()).finish()
    }
}
