//! A server with a paced model, and clients at it over every transport.

use std::path::PathBuf;

use gander_testkit::harness::{Client, Launch, Server, data, workspace};
use gander_testkit::upstream::Upstream;

use crate::acp_net::bridge::{over_http, over_socket};
use crate::acp_net::http::AcpHttpClient;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// A server with a model, and a folder to work in.
pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) http_client: AcpHttpClient,
    pub(crate) folder: PathBuf,
    _upstream: Option<Upstream>,
    _root: tempfile::TempDir,
}

/// A way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Unix,
    Socket,
    Http,
}

pub(crate) const TRANSPORTS: [Transport; 3] = [Transport::Unix, Transport::Socket, Transport::Http];

impl TestServer {
    /// With a model on loopback that streams at the pace of the prompt.
    pub(crate) async fn paced() -> anyhow::Result<Self> {
        Self::paced_with(&[]).await
    }

    /// The same with these variables.
    pub(crate) async fn paced_with(variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let upstream = Upstream::start().await?;
        let root = tempfile::tempdir()?;
        let launch = Launch::openai(GANDER, data(root.path())?, &upstream.base_url());
        let launch = variables.iter().fold(launch, |launch, (name, value)| launch.with(name, value));
        Self::open(root, launch, Some(upstream)).await
    }

    /// With the demo model, and a question before every tool.
    pub(crate) async fn asking() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(GANDER, data(root.path())?);
        Self::open(root, launch, None).await
    }

    /// With the demo model, nothing to ask, and this variable.
    pub(crate) async fn with(name: &str, value: &str) -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(GANDER, data(root.path())?).with(name, value);
        Self::open(root, launch, None).await
    }

    async fn open(root: tempfile::TempDir, launch: Launch, upstream: Option<Upstream>) -> anyhow::Result<Self> {
        let streams = "GANDER_LIMITS_LOCAL_STREAMS";
        let is_set = launch.variables.iter().any(|(name, _)| name == streams);
        let launch = if is_set { launch } else { launch.with(streams, "5000") };
        let server = launch.serve().await?;
        let token = launch.stdout(&["token"]).await?.trim().to_owned();
        let http_client = AcpHttpClient { address: server.address, token, query: "" };
        Ok(Self { server, http_client, folder: workspace(root.path())?, _upstream: upstream, _root: root })
    }

    /// Kills the server and starts another on the same data.
    pub(crate) async fn restart(mut self) -> anyhow::Result<Self> {
        let launch = self.server.launch.clone();
        self.server.kill().await?;
        self.server = launch.serve().await?;
        self.http_client.address = self.server.address;
        Ok(self)
    }

    /// A client that has introduced itself.
    pub(crate) async fn client(&self, transport: Transport) -> anyhow::Result<Client> {
        let mut client = match transport {
            Transport::Unix => return self.server.client().await,
            Transport::Socket => over_socket(&self.http_client).await?,
            Transport::Http => over_http(&self.http_client),
        };
        client.initialize().await?;
        Ok(client)
    }
}
