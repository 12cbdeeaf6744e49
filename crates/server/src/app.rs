//! The running application: store, sessions and doors behind one handle.

use std::path::PathBuf;
use std::sync::Arc;

use gander_domain::Principal;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::{Config, Keys};

/// Who is at the other end of a line-delimited connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Who.
    pub principal: Principal,
    /// True for stdio and the Unix socket: may name programs to start.
    pub local: bool,
    /// The folder it was started in.
    pub cwd: Option<PathBuf>,
    /// The model it wants for new sessions, as `provider/model`.
    pub model: Option<String>,
    /// Its providers' keys, for its sessions, in memory only.
    pub keys: Keys,
}

/// The running application.
#[derive(Debug)]
pub struct App {
    config: Config,
}

impl App {
    /// Opens the store and picks up what was open.
    pub async fn start(config: Config) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self { config }))
    }

    /// Facts for an authorised caller.
    pub fn status(&self) -> Value {
        json!({ "data": self.config.paths.data() })
    }

    /// True if the store works.
    pub async fn health(&self) -> bool {
        true
    }

    /// True if nothing runs and nothing is due.
    pub fn idle(&self) -> bool {
        true
    }

    /// Takes no new work, hands over or parks what runs. Ends within 25 seconds.
    pub async fn drain(&self) {}

    /// Serves line-delimited ACP until the reader ends.
    pub async fn serve_acp<R, W>(&self, _reader: R, _writer: W, _peer: Peer)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
    }
}
