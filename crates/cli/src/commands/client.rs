//! A connection to an agent server for the commands.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use gander::app::App;
use gander::config::{Config, Origin};
use gander::daemon::{Attached, Hello, ServerError, Want, attach_to_server};
use gander_client::{AgentConnection, Link};
use gander_domain::Policy;
use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_services::paths::DirectoryLock;

/// An application inside this very process, and the lock that makes the data directory its own.
pub(super) struct StandaloneClient {
    pub(super) app: Arc<App>,
    _lock: DirectoryLock,
}

impl StandaloneClient {
    /// Takes the data directory for this process.
    pub(super) async fn start(config: &Config) -> anyhow::Result<Self> {
        config.paths.create_folders()?;
        let lock = DirectoryLock::try_take(&config.paths.server_lock())?;
        let taken = || ServerError::Taken(config.paths.data_directory().to_owned());
        let lock = lock.ok_or_else(taken).context("--standalone needs the data directory for itself")?;
        Ok(Self { app: App::start(config.clone()).await?, _lock: lock })
    }

    /// The person who started this process.
    pub(super) fn peer(config: &Config, cwd: &Path) -> ClientPeer {
        ClientPeer {
            caller: Caller::local_owner(),
            cwd: Some(cwd.to_owned()),
            model: config.sections.model.default.clone(),
            policy: client_policy(config),
            keys: config.keys.clone(),
            options: config.sections.acp,
            program: config.helper.clone(),
        }
    }
}

/// The policy that this very process was started with: it is for its sessions, not for everybody's.
fn client_policy(config: &Config) -> Option<Policy> {
    match config.origin("permissions.policy") {
        Origin::Flag(_) | Origin::Variable(_) => Some(config.sections.permissions.policy),
        Origin::Default | Origin::File { .. } => None,
    }
}

/// What this process tells the server when it attaches.
pub(super) fn client_hello(config: &Config, cwd: &Path) -> Hello {
    let mut hello = Hello::new(Want::Acp);
    hello.cwd = Some(cwd.to_owned());
    hello.model.clone_from(&config.sections.model.default);
    hello.policy = client_policy(config);
    hello.keys = config.keys.clone();
    hello.options = config.sections.acp;
    hello.program.clone_from(&config.helper);
    hello
}

/// To the server of the data directory, which is started if none runs.
pub(super) async fn connect_client(config: &Config, cwd: &Path) -> anyhow::Result<AgentConnection> {
    introduce_client(attach_client_link(config, cwd).await?).await
}

/// The same before anybody has introduced themselves.
pub(super) async fn attach_client_link(config: &Config, cwd: &Path) -> anyhow::Result<Link> {
    let Attached { reader, writer, .. } = attach_to_server(config, &client_hello(config, cwd)).await?;
    Ok(Link::from_line_streams(reader, writer))
}

/// To an application in this process.
pub(super) async fn connect_client_within(
    standalone: &StandaloneClient,
    config: &Config,
    cwd: &Path,
) -> anyhow::Result<AgentConnection> {
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let (app, peer) = (standalone.app.clone(), StandaloneClient::peer(config, cwd));
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(theirs);
        app.serve_acp(reader, writer, peer).await;
    });
    let (reader, writer) = tokio::io::split(ours);
    introduce_client(Link::from_line_streams(reader, writer)).await
}

/// Over any link.
pub(super) async fn introduce_client(link: Link) -> anyhow::Result<AgentConnection> {
    let mut connection = AgentConnection::new(link);
    let call = connection.client.initialize("gander", gander::VERSION);
    connection.wait_for_answer(call, |_| {}).await?;
    Ok(connection)
}
