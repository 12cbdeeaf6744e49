//! What nodes tell each other to look at.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// What may be there for a node. Followers of sessions are woken by the store itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Commands for sessions that it owns.
    pub commands: bool,
    /// Answers to its own commands.
    pub answers: bool,
    /// Sessions with work and without an owner.
    pub work: bool,
}

impl Hints {
    /// Look for everything.
    pub const ALL: Self = Self { commands: true, answers: true, work: true };

    fn bits(self) -> u8 {
        u8::from(self.commands) | u8::from(self.answers) << 1 | u8::from(self.work) << 2
    }

    fn from_bits(bits: u8) -> Self {
        Self { commands: bits & 1 != 0, answers: bits & 2 != 0, work: bits & 4 != 0 }
    }
}

/// Where a node's hints gather until it looks: any number of them is one.
#[derive(Debug, Default)]
pub struct HintBox {
    waiting: AtomicU8,
    wake: Notify,
}

impl HintBox {
    pub fn put(&self, hints: Hints) {
        self.waiting.fetch_or(hints.bits(), Ordering::AcqRel);
        // `notify_one` keeps a permit if nobody waits, so that none is lost between two looks.
        self.wake.notify_one();
    }

    /// Waits until there is one. Safe to drop at any time.
    pub async fn take(&self) -> Hints {
        loop {
            let bits = self.waiting.swap(0, Ordering::AcqRel);
            if bits != 0 {
                return Hints::from_bits(bits);
            }
            self.wake.notified().await;
        }
    }
}
