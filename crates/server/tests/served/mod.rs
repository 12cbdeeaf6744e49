//! A server in this process on a port of its own, as the tests of several doors use it.
#![allow(dead_code, clippy::unwrap_used)]

pub mod answer;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use gander_server::app::App;
use gander_server::config::{Config, Environment, Flags};
use gander_server::http::{ROUTES, Site, router, serve};
use gander_server::token::{self, Tokens};
use secrecy::ExposeSecret;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Requests that nobody counts.
const MANY: &str = "1000000";

/// The server; it ends when this is dropped.
pub struct Served {
    pub address: SocketAddr,
    /// The owner's.
    pub token: String,
    pub app: Arc<App>,
    pub config: Config,
    _stop: DropGuard,
    root: tempfile::TempDir,
}

impl Served {
    /// With the demo model, and these variables over those that its door's tests share.
    pub async fn with(shared: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let root = tempfile::tempdir().unwrap();
        let home = root.path().display().to_string();
        let fixed = [
            ("HOME", home.as_str()),
            ("GANDER_MODEL", "demo/demo"),
            ("GANDER_LIMITS_REQUESTS_PER_SECOND", MANY),
            ("GANDER_LIMITS_REQUEST_BURST", MANY),
        ];
        let all = fixed.iter().chain(shared).chain(variables);
        let pairs = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let flags = Flags { data: Some(root.path().join("data")), ..Flags::default() };
        let config = Config::load(&flags, &Environment::from_pairs(pairs)).unwrap();
        config.paths.create().unwrap();
        let token = token::owner_token(&config.paths).unwrap().expose_secret().to_owned();
        let app = App::start(config.clone()).await.unwrap();
        let site = Site::new(Arc::clone(&app), &config, Tokens::open(&config.paths).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, site.clone(), router(ROUTES, &site), stop.clone()));
        Self { address, token, app, config, _stop: stop.drop_guard(), root }
    }

    /// The folder that everything of this server is in.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A folder to work in.
    pub fn work(&self) -> std::path::PathBuf {
        gander_testkit::harness::workspace(self.root()).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}
