//! Counts panics: one ends its task, never the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts panics of this process from now on, beside what the panic hook does already: of handlers, of spawned tasks
/// and of blocking threads alike, all of which the hook alone sees. Call it after logging has set its own hook.
pub fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, hook) = (Arc::downgrade(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(counted) = counted.upgrade() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        hook(panic);
    }));
    panics
}
