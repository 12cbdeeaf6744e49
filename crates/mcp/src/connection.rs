//! One connection to a server, from greeting to farewell.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gander_tools::output::clip_output;
use gander_tools::sandbox::{SandboxPolicy, Wrap};
use rmcp::ClientServiceExt as _;
use rmcp::model::{LoggingLevel, PaginatedRequestParams, ProtocolVersion, ServerPeerInfo, SetLevelRequestParams};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, QuitReason, RoleClient, RunningServiceCancellationToken,
    ServiceError,
};
use rmcp::transport::IntoTransport;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::catalogue::{self, Catalogue};
use super::child::{Child, Program};
use super::connect_failure::{ConnectFailure, OpenError, connection_error_with_last_line};
use super::handler::McpHandler;
use super::http;
use super::server_env::{ServerEnv, connection_network_access};
use super::session_handles::SessionHandles;
use super::spec::{Spec, Transport, spec_home_name};
use super::write_counter::{CountedWriter, WriteCounter};

/// Pages of one list that are read.
const MAX_PAGES: usize = 32;

/// How long a connection may take to say farewell.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How much of what a server says about itself is taken in.
const MAX_INSTRUCTIONS_BYTES: usize = 4 << 10;

/// A live connection, as calls use it. Cheap to clone.
#[derive(Clone)]
pub(super) struct McpConnectionHandle {
    pub peer: Peer<RoleClient>,
    pub calls: Arc<Calls>,
    pub handler: McpHandler,
    /// How much a program was told; an address does not say.
    pub counter: Option<WriteCounter>,
    /// Set once the server wants an authorization that it does not get: another connection may tell what is missing.
    pub unauthorized: CancellationToken,
}

/// A live connection and what keeps it alive.
pub(super) struct McpConnection {
    pub line: McpConnectionHandle,
    /// Ends with the connection; none once it was heard of.
    done: Option<JoinHandle<Result<QuitReason, JoinError>>>,
    cancel: Option<RunningServiceCancellationToken>,
    child: Option<Child>,
}

impl McpConnection {
    /// Connects and greets. A server that refuses the old greeting gets the new one, on a fresh connection.
    pub(super) async fn open(
        name: &str,
        spec: &Spec,
        server_env: &ServerEnv,
        sessions: &SessionHandles,
    ) -> Result<Self, OpenError> {
        let handler = || build_connection_handler(name, spec, server_env, sessions);
        match Self::connect(handler(), spec, server_env, ClientLifecycleMode::Initialize).await {
            Ok(link) => Ok(link),
            Err(ConnectFailure::Greeting(error, _)) if matches!(*error, ClientInitializeError::JsonRpcError(_)) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let discover = ClientLifecycleMode::Discover { preferred_versions };
                Self::connect(handler(), spec, server_env, discover)
                    .await
                    .map_err(|failure| failure.into_open_error(spec, server_env))
            }
            Err(failure) => Err(failure.into_open_error(spec, server_env)),
        }
    }

    async fn connect(
        handler: McpHandler,
        spec: &Spec,
        server_env: &ServerEnv,
        how: ClientLifecycleMode,
    ) -> Result<Self, ConnectFailure> {
        match &spec.transport {
            Transport::Stdio { command, args, env } => {
                // Its folders are looked through for what must stay as it is.
                let (asked, around) = (spec.clone(), server_env.clone());
                let wrap = tokio::task::spawn_blocking(move || connection_sandbox_wrap(&asked, &around)).await;
                let wrap = wrap.unwrap_or_else(|error| Err(error.to_string())).map_err(ConnectFailure::Start)?;
                let program =
                    Program { command, args, env, environment: &server_env.environment, cwd: &server_env.cwd, wrap };
                let started = Child::start(&program).await;
                let (child, streams) =
                    started.map_err(|error| ConnectFailure::Start(format!("{}: {error}", command.display())))?;
                let (said, told) = (streams.0, CountedWriter::new(streams.1));
                let counter = told.counter();
                let mut link = Self::connect_over_transport(handler, (said, told), how, Some(child)).await?;
                link.line.counter = Some(counter);
                Ok(link)
            }
            Transport::Http { .. } => {
                let transport = http::http_transport(spec, &server_env.keyring).await.map_err(ConnectFailure::Start)?;
                Self::connect_over_transport(handler, transport, how, None).await
            }
        }
    }

    async fn connect_over_transport<T, E, A>(
        handler: McpHandler,
        transport: T,
        how: ClientLifecycleMode,
        child: Option<Child>,
    ) -> Result<Self, ConnectFailure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let complaints = child.as_ref().map(Child::stderr_tail).unwrap_or_default();
        let served = handler.clone().serve_with_lifecycle(transport, how).await;
        let service = match served {
            Ok(service) => service,
            Err(error) => {
                let said = if child.is_some() { complaints.last_lines().await } else { String::new() };
                return Err(ConnectFailure::Greeting(Box::new(error), said));
            }
        };
        let (peer, calls, unauthorized) =
            (service.peer().clone(), Arc::clone(&handler.calls), CancellationToken::new());
        let line = McpConnectionHandle { peer, calls, handler, counter: None, unauthorized };
        let cancel = Some(service.cancellation_token());
        Ok(Self { line, cancel, done: Some(tokio::spawn(service.waiting())), child })
    }

    /// Until the connection is over, and why.
    pub(super) async fn wait_until_over(&mut self) -> String {
        let Some(done) = &mut self.done else { return std::future::pending().await };
        let quit = done.await;
        self.done = None;
        let complaints = match &self.child {
            Some(child) => child.stderr_tail().last_lines().await,
            None => String::new(),
        };
        match quit {
            Ok(Ok(_)) => connection_error_with_last_line("it stopped", &complaints),
            Ok(Err(error)) | Err(error) => format!("the connection failed: {error}"),
        }
    }

    /// Says farewell, then ends what was started.
    pub(super) async fn close(mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        if let Some(done) = &mut self.done {
            drop(tokio::time::timeout(CLOSE_TIMEOUT, done).await);
            self.done = None;
        }
        if let Some(child) = self.child.take() {
            child.stop().await;
        }
    }
}

impl Drop for McpConnection {
    /// Whoever waits for a person's answer waits no more.
    fn drop(&mut self) {
        self.line.handler.gone.cancel();
        if let Some(done) = &self.done {
            done.abort();
        }
    }
}

/// All pages of a list, but not for ever.
macro_rules! pages {
    ($peer:expr, $list:ident, $items:ident) => {{
        let (mut items, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = $peer.$list(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            items.extend(page.$items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        items
    }};
}

impl McpConnectionHandle {
    /// True if both are one connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.calls, &other.calls)
    }

    /// Takes note of what an error says about the connection.
    pub(super) fn note_unauthorized(&self, error: ServiceError) -> ServiceError {
        if http::is_unauthorized_http(&error) {
            self.unauthorized.cancel();
        }
        error
    }

    /// Everything the server offers now.
    pub(super) async fn list_tools_and_prompts(&self, name: &str) -> Result<Catalogue, String> {
        let read = self.read_catalogue(name).await.map_err(|error| self.note_unauthorized(error));
        read.map_err(|error| format!("its lists cannot be read: {error}"))
    }

    async fn read_catalogue(&self, name: &str) -> Result<Catalogue, ServiceError> {
        let Some(info) = self.peer.peer_info() else { return Ok(Catalogue::default()) };
        let ServerPeerInfo { capabilities, instructions, .. } = &*info;
        let instructions = instructions.clone().map(|text| clip_output(text, MAX_INSTRUCTIONS_BYTES));
        let mut catalogue = Catalogue { instructions, ..Catalogue::default() };
        if capabilities.tools.is_some() {
            catalogue.tools = catalogue::offered_tools(name, pages!(self.peer, list_tools, tools));
        }
        if capabilities.prompts.is_some() {
            catalogue.prompts = catalogue::prompt_specs(name, pages!(self.peer, list_prompts, prompts));
        }
        if capabilities.resources.is_some() {
            catalogue.resources = pages!(self.peer, list_resources, resources);
            catalogue.templates = self.list_templates().await.unwrap_or_default();
        }
        Ok(catalogue)
    }

    /// Many servers with resources have no templates and say so with an error.
    async fn list_templates(&self) -> Result<Vec<rmcp::model::ResourceTemplate>, ServiceError> {
        Ok(pages!(self.peer, list_resource_templates, resource_templates))
    }

    /// People are shown what matters: the server need not send the rest.
    pub(super) async fn limit_logging(&self) {
        let logs = self.peer.peer_info().is_some_and(|info| info.capabilities.logging.is_some());
        if logs && let Err(error) = self.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await {
            tracing::debug!(%error, "a server keeps its own level of logging");
        }
    }
}

/// What puts a policy around a server's program; none where there is no sandbox, or it is to have none.
fn connection_sandbox_wrap(spec: &Spec, server_env: &ServerEnv) -> Result<Option<Wrap>, String> {
    let Transport::Stdio { command, args, .. } = &spec.transport else { return Ok(None) };
    let Some(network) = connection_network_access(spec, server_env) else { return Ok(None) };
    // Inside of the policy nobody could tell a missing program from a hidden one.
    if command.is_absolute() {
        std::fs::metadata(command).map_err(|error| format!("{}: {error}", command.display()))?;
    }
    let folders: Vec<PathBuf> = std::iter::once(&server_env.cwd).chain(&server_env.folders).cloned().collect();
    let words = std::iter::once(command.clone()).chain(args.iter().map(PathBuf::from)).collect();
    let policy = server_env.sandbox.policy_for_program(&folders, network, words);
    let home = server_env.homes.as_ref().map(|homes| homes.join(spec_home_name(&spec.name)));
    if let (Some(home), Some(_)) = (&home, &policy) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
        made.map_err(|error| format!("its home cannot be made: {error}: {}", home.display()))?;
    }
    let policy = policy.map(|policy| home.into_iter().fold(policy, SandboxPolicy::keeping_in));
    policy
        .map(|policy| server_env.sandbox.wrap_command(&policy))
        .transpose()
        .map_err(|error| format!("no sandbox: {error}"))
}

fn build_connection_handler(name: &str, spec: &Spec, server_env: &ServerEnv, sessions: &SessionHandles) -> McpHandler {
    McpHandler {
        name: name.to_owned(),
        sessions: sessions.clone(),
        shared: spec.shared,
        calls: Arc::default(),
        roots: Arc::clone(&server_env.roots),
        redactor: server_env.redactor_for(spec),
        changed: Arc::new(Notify::new()),
        gone: CancellationToken::new(),
        notices: Arc::default(),
    }
}
