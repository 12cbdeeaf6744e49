//! A server in this process on a port of its own, as the tests of several protocols use it.
#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)]

pub mod answer;
mod asks;
pub mod pipe;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use gander::app::{App, AppBuilder};
use gander::config::{Config, Environment, Flags};
use gander_gateway::server::{Gateway, router};
use gander_http::serve_http;
use gander_services::token::{self, Tokens};
use gander_testkit::harness::PATIENCE;
use secrecy::ExposeSecret;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use answer::Answer;

/// Hears every answer, with what was asked.
pub type Heard = Box<dyn Fn(&reqwest::Request, &Answer) + Send + Sync>;

/// Stands among the variables for a server with agents for conformance kits.
pub const CONFORMANCE_AGENTS: (&str, &str) = ("agents for conformance kits", "");

/// The server; it ends when this is dropped.
pub struct Served {
    pub address: SocketAddr,
    /// The owner's.
    pub token: String,
    pub app: Arc<App>,
    pub gateway: Arc<Gateway>,
    pub config: Config,
    pub client: reqwest::Client,
    heard: Heard,
    stop: DropGuard,
    root: Arc<tempfile::TempDir>,
}

/// The settings of a data directory below this folder, which is also the home, and the environment that they came from.
pub fn settings(root: &Path, variables: &[(&str, &str)]) -> (Config, Environment) {
    let home = root.to_str().unwrap();
    let pairs = [("HOME", home)].into_iter().chain(variables.iter().copied());
    let environment = Environment::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let flags = Flags { data: Some(root.join("data")), ..Flags::default() };
    let config = Config::load(&flags, &environment).unwrap();
    config.paths.create_folders().unwrap();
    (config, environment)
}

/// An application with the demo model, and nothing that listens.
pub async fn app(root: &Path) -> Arc<App> {
    App::start(settings(root, &[("GANDER_MODEL", "demo/demo")]).0).await.unwrap()
}

impl Served {
    /// With the demo model and the product's own defaults, but for these variables over those that its door's tests share.
    pub async fn with(shared: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let fixed = [("GANDER_MODEL", "demo/demo")];
        let mut variables = [&fixed, shared, variables].concat();
        let all = variables.len();
        variables.retain(|variable| *variable != CONFORMANCE_AGENTS);
        let (config, _) = settings(root.path(), &variables);
        let app = match variables.len() < all {
            true => App::builder(config).with_agents(gander_conformance::agents),
            false => App::builder(config),
        };
        Self::of(Arc::new(root), app, router).await
    }

    /// With exactly these settings, whose files are below this folder.
    pub async fn of(
        root: Arc<tempfile::TempDir>,
        app: impl Into<AppBuilder>,
        router: fn(&Gateway) -> axum::Router,
    ) -> Self {
        let app: AppBuilder = app.into();
        let config = app.config().clone();
        rustls::crypto::ring::default_provider().install_default().ok();
        let token = token::owner_token(&config.paths).unwrap().expose_secret().to_owned();
        let app = app.start().await.unwrap();
        let tokens = Tokens::open(&config.paths).unwrap().with_chosen_token(config.secret.as_ref());
        let gateway = app.gateway(&config, tokens);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(serve_http(listener, gateway.http.clone(), router(&gateway), stop.clone()));
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let (heard, stop): (Heard, _) = (Box::new(|_, _| {}), stop.drop_guard());
        Self { address, token, app, gateway, config, client, heard, stop, root }
    }

    /// Ends it, and gives the folder that everything of it is in.
    pub async fn end(self) -> Arc<tempfile::TempDir> {
        let Self { app, stop, root, .. } = self;
        drop(stop);
        app.drain().await;
        root
    }

    /// The same, with somebody who hears every answer.
    pub fn heard_by(self, heard: Heard) -> Self {
        Self { heard, ..self }
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

/// A protocol's own test server: the server with variables that its tests share, and perhaps somebody who hears every answer.
macro_rules! test_server {
    ($($shared:expr)?) => {
        $crate::served::test_server!(@ [$($shared)?], Box::new(|_, _| {}));
    };
    ($shared:expr, $heard:expr) => {
        $crate::served::test_server!(@ [$shared], $heard);
    };
    (@ $shared:expr, $heard:expr) => {
        pub struct TestServer($crate::served::Served);

        impl std::ops::Deref for TestServer {
            type Target = $crate::served::Served;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl TestServer {
            pub async fn open() -> Self {
                Self::with(&[]).await
            }

            pub async fn with(variables: &[(&str, &str)]) -> Self {
                Self($crate::served::Served::with(&$shared, variables).await.heard_by($heard))
            }
        }
    };
}

pub(crate) use test_server;
