//! Which programs of MCP servers were given the network by a person.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Which programs were given the network by a person. Whoever keeps it knows for whom it counts.
pub trait NetworkGrantStore: Send + Sync {
    /// True if this one was.
    fn is_granted(&self, server: &str) -> bool;

    /// From now on it is; `name` is what people call it.
    fn grant(&self, name: &str, server: &str);
}

/// What is forgotten with the process.
#[derive(Debug, Default)]
pub struct MemoryNetworkGrantStore(Mutex<HashSet<String>>);

impl NetworkGrantStore for MemoryNetworkGrantStore {
    fn is_granted(&self, server: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(server)
    }

    fn grant(&self, _name: &str, server: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned());
    }
}
