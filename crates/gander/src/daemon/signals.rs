//! Signals of the system that end a server.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a server. Listened to before it starts, so that none of them kills it half-way.
#[derive(Debug)]
pub struct Signals {
    all: [Signal; 3],
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let of = |kind| signal(kind);
        Ok(Self { all: [of(SignalKind::terminate())?, of(SignalKind::interrupt())?, of(SignalKind::hangup())?] })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.all;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
