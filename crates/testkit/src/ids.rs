//! Ids that count, so that a test can name them.

use gander_domain::IdGenerator;
use uuid::Uuid;

/// Hands out 1, 2, 3 … as UUIDs.
#[derive(Clone, Debug, Default)]
pub struct CountingIds(u128);

impl CountingIds {
    /// Ids above this one.
    pub fn after(last: u128) -> Self {
        Self(last)
    }
}

impl IdGenerator for CountingIds {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}
