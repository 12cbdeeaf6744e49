//! A session's servers, as its runs use them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::{
    Choice, ChoiceKind, Part, QuestionKind, QuestionOrigin, Reply, SubagentCall, ToolCall, ToolCallId, ToolContent,
    ToolEnd, ToolKind, ToolResult,
};
use gander_tools::sandbox::{Network, Sandbox};
use gander_tools::{BuiltIns, Environment, Group, Limits, ListedTool, Redactor, ToolEvent};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call_title::{call_argument_fields, call_title};
use super::calls::ToolUse;
use super::catalogue::{OfferedTool, PromptSpec};
use super::login::Keyring;
use super::network_store::{MemoryNetworkGrantStore, NetworkGrantStore};
use super::pins::{self, MemoryToolPinStore, ToolPinStore};
use super::pool::{PoolLease, Sharing};
use super::server::{McpServer, ServerPhase, ServerTimeouts};
use super::server_env::ServerEnv;
use super::session_handle::{ListenGuard, RunListener, ServerEvent, SessionHandle};
use super::spec::Spec;
use super::{content, login_prompt, names, network_prompt, prompts, resources, retry};

/// A session's servers. Dropping it ends them all.
pub struct Servers {
    servers: Mutex<Vec<PoolLease>>,
    sharing: Sharing,
    pub(super) env: ServerEnv,
    pub(super) limits: Limits,
    pins: Arc<dyn ToolPinStore>,
    times: ServerTimeouts,
    /// Changed tools that the run under way was asked about.
    asked: Mutex<HashSet<String>>,
    /// Which of our own tools are on beside theirs.
    built_ins: Mutex<BuiltIns>,
}

/// What surrounds a session's servers: the server knows, they must not look.
pub struct ServersConfig {
    /// Where programs are started.
    pub workspace: PathBuf,
    /// Further folders of the session.
    pub folders: Vec<PathBuf>,
    /// What programs find around them.
    pub environment: Environment,
    /// Puts fences around programs.
    pub sandbox: Sandbox,
    /// Whether programs find the network without a word in their entry.
    pub network: Network,
    /// Which of them a person gave it to.
    pub networks: Arc<dyn NetworkGrantStore>,
    /// How much a result may hold.
    pub limits: Limits,
    /// Hides secrets in everything that is shown.
    pub redactor: Redactor,
    /// What tools were when they were first seen.
    pub pins: Arc<dyn ToolPinStore>,
    /// Tokens of the session's owner.
    pub keyring: Keyring,
    /// With whom servers are shared whose entries say so.
    pub sharing: Sharing,
    /// Holds the homes of programs; absent: nothing of theirs lasts.
    pub homes: Option<PathBuf>,
    /// How long a server may take from its start to its lists.
    pub start: Duration,
    /// A server that nobody needs for so long sleeps.
    pub idle: Duration,
}

/// How one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name before its tools.
    pub name: String,
    /// Where it is, without secrets.
    pub place: String,
    /// How it is.
    pub state: ServerState,
    /// Its tools on offer, by our names.
    pub tools: Vec<String>,
    /// Its tools that changed and that nobody approved of, by its own names.
    pub changed: Vec<String>,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It starts when it is needed.
    Asleep,
    /// It is being started.
    Starting,
    /// It works.
    Ready,
    /// It wants a login first.
    Locked,
    /// It does not, for this reason.
    Failed(String),
}

impl Default for Servers {
    /// None.
    fn default() -> Self {
        Self::new(
            Vec::new(),
            ServersConfig {
                workspace: PathBuf::from("/"),
                folders: Vec::new(),
                environment: Environment::default(),
                sandbox: Sandbox::default(),
                network: Network::Closed,
                networks: Arc::new(MemoryNetworkGrantStore::default()),
                limits: Limits::default(),
                redactor: Redactor::default(),
                pins: Arc::new(MemoryToolPinStore::default()),
                keyring: Keyring::default(),
                sharing: Sharing::default(),
                homes: None,
                start: Duration::from_secs(30),
                idle: Duration::from_secs(600),
            },
        )
    }
}

impl Servers {
    /// These servers, all asleep.
    pub fn new(specs: Vec<Spec>, circumstances: ServersConfig) -> Self {
        let ServersConfig { workspace, folders, environment, limits, redactor, pins, start, idle, .. } = circumstances;
        let ServersConfig { sandbox, network, networks, keyring, sharing, homes, .. } = circumstances;
        let roots =
            std::iter::once(&workspace).chain(&folders).filter_map(|folder| reqwest::Url::from_file_path(folder).ok());
        let roots = roots.map(String::from).collect();
        let session = SessionHandle::default();
        let cwd = workspace;
        let env = ServerEnv {
            session,
            environment,
            cwd,
            folders,
            sandbox,
            network,
            networks,
            roots,
            redactor,
            keyring,
            homes,
        };
        let servers = Self {
            servers: Mutex::default(),
            sharing,
            env,
            limits,
            pins,
            times: ServerTimeouts { start, idle },
            asked: Mutex::default(),
            built_ins: Mutex::default(),
        };
        servers.set_specs(specs);
        servers
    }

    /// From now on these. One that is named as it was goes on as it is.
    pub fn set_specs(&self, specs: Vec<Spec>) {
        let names = names::unique_server_names(specs.iter().map(|spec| spec.name.as_str()));
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *servers);
        *servers = specs.into_iter().zip(names).map(|(spec, name)| self.keep_or_start(&mut old, name, spec)).collect();
    }

    fn keep_or_start(&self, old: &mut Vec<PoolLease>, name: String, spec: Spec) -> PoolLease {
        let same = |lease: &PoolLease| {
            let likes = |spec: &Spec| (spec.identity(), spec.confinement, spec.patience, spec.client_id(), spec.shared);
            let server = &lease.server;
            server.name == name
                && likes(&server.spec) == likes(&spec)
                && server.spec.secret_values() == spec.secret_values()
        };
        match old.iter().position(same) {
            Some(place) => old.swap_remove(place),
            None if spec.shared => PoolLease::shared_server(name, spec, &self.env, self.times, &self.sharing),
            None => PoolLease::private_server(name, spec, &self.env, self.times),
        }
    }

    /// From now on these of our own tools are on. A run that is under way hears of it.
    pub fn set_built_ins(&self, built_ins: BuiltIns) {
        let before = std::mem::replace(&mut *self.lock_built_ins(), built_ins.clone());
        if before != built_ins {
            self.env.session.send_event(ServerEvent::Tools);
        }
    }

    /// Which of our own tools are on.
    pub fn built_ins(&self) -> BuiltIns {
        self.lock_built_ins().clone()
    }

    fn lock_built_ins(&self) -> MutexGuard<'_, BuiltIns> {
        self.built_ins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.all_servers().is_empty()
    }

    /// True if none of them runs.
    pub fn are_asleep(&self) -> bool {
        self.all_servers().iter().all(|server| {
            matches!(server.current_view().phase, ServerPhase::Asleep | ServerPhase::Locked | ServerPhase::Failed(_))
        })
    }

    /// Starts all of them, in the background.
    pub fn start_all(&self) {
        self.all_servers().iter().for_each(|server| server.request_start());
    }

    /// Somebody logged in at this server: where it waits for that, it goes on.
    pub fn resume_after_login(&self, spec: &Spec) {
        let waits = |server: &&Arc<McpServer>| {
            server.current_view().phase == ServerPhase::Locked && server.spec.identity() == spec.identity()
        };
        self.all_servers().iter().filter(waits).for_each(|server| server.request_start());
    }

    /// Until each is ready or has failed. They are wanted by this.
    pub async fn wait_until_settled(&self) {
        let all = self.all_servers();
        futures::future::join_all(all.iter().map(|server| server.wait_until_settled())).await;
    }

    /// Until each was tried once. They are wanted by this; those that are down are tried again beside.
    pub async fn wait_until_tried(&self) {
        let all = self.all_servers();
        futures::future::join_all(all.iter().map(|server| server.wait_until_tried())).await;
    }

    /// From now on this run hears what they say; first, which of them do not work, unless the session knows.
    pub fn listen_for_run(&self, listener: RunListener) -> ListenGuard {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let attendance = self.env.session.attach_listener(listener);
        for server in self.all_servers() {
            if let Some(outage) = server.current_view().outage {
                self.env.session.send_outage(&server.name, &outage);
            }
        }
        self.ask_pending_reviews();
        attendance
    }

    /// Asks the people behind the run that listens; with nobody there the answer is `Cancelled`.
    pub async fn ask_person(&self, title: &str, ask: QuestionKind, origin: QuestionOrigin) -> Reply {
        self.env.session.ask_person(title, ask, origin).await
    }

    /// The same for a sub-agent, with what it wants to do.
    pub async fn ask_for_subagent(
        &self,
        title: &str,
        ask: QuestionKind,
        origin: QuestionOrigin,
        subagent: Option<Box<SubagentCall>>,
    ) -> Reply {
        self.env.session.ask_for_subagent(title, ask, origin, subagent).await
    }

    /// Asks about tools that are not what they were, for logins and for the network. Each is asked about once in a run.
    pub fn ask_pending_reviews(&self) {
        for server in self.all_servers().into_iter().filter(|server| server.current_view().offline) {
            if self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("network {}", server.name)) {
                tokio::spawn(network_prompt::offer_network(self.env.clone(), server));
            }
        }
        for server in self.all_servers().into_iter().filter(|server| server.current_view().phase == ServerPhase::Locked)
        {
            if self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("login {}", server.name)) {
                tokio::spawn(login_prompt::prompt_login(self.env.clone(), server));
            }
        }
        for (server, offered) in
            self.offered_tools().into_iter().filter(|(server, offered)| !self.is_pinned(server, offered))
        {
            let fresh = self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(offered.definition.clone());
            if fresh {
                tokio::spawn(ask_about_changed_tool(self.env.session.clone(), Arc::clone(&self.pins), server, offered));
            }
        }
    }

    /// The tools on offer.
    pub fn listed_tools(&self) -> Vec<ListedTool> {
        let tools = self.usable_tools().into_iter();
        let tools = tools.map(|(_, offered)| ListedTool { spec: offered.spec, group: Group::Mcp });
        tools.chain(resources::listed_resource_tools(&self.all_servers())).collect()
    }

    /// What the servers say about themselves, by name.
    pub fn server_instructions(&self) -> Vec<(String, String)> {
        let said =
            |server: Arc<McpServer>| Some((server.name.clone(), server.current_view().catalogue.instructions.clone()?));
        self.all_servers().into_iter().filter_map(said).collect()
    }

    /// The prompts on offer.
    pub fn prompt_specs(&self) -> Vec<PromptSpec> {
        self.all_servers().iter().flat_map(|server| server.current_view().catalogue.prompts.clone()).collect()
    }

    /// What a person's prompt becomes: `/server:prompt words` is what that prompt says, anything else stays.
    pub async fn expand_prompt(&self, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let Some((name, words)) = prompts::typed_prompt(&parts) else { return Ok(parts) };
        match self.prompt_specs().into_iter().find(|prompt| prompt.slash_command_name() == name) {
            Some(prompt) => {
                let said = prompts::fill_prompt(&self.all_servers(), &prompt, words, &self.limits).await?;
                Ok(said.into_iter().chain(parts.into_iter().skip(1)).collect())
            }
            None => Ok(parts),
        }
    }

    /// True if a person's prompt may be one of theirs: it names one of the servers.
    pub fn names_prompt(&self, parts: &[Part]) -> bool {
        let server = prompts::typed_prompt(parts).and_then(|(name, _)| name.split_once(':'));
        server.is_some_and(|(server, _)| self.all_servers().iter().any(|known| known.name == server))
    }

    /// How each of them is.
    pub fn server_statuses(&self) -> Vec<ServerStatus> {
        self.all_servers().iter().map(|server| self.server_status(server)).collect()
    }

    /// Describes a call of one of their tools; `None` if it is none of theirs.
    pub fn describe_call(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        let Some((server, offered)) = self.find_tool(name) else {
            return resources::describe_resource_call(id, name, arguments).filter(|_| self.has_resources());
        };
        let Some(given) = call_argument_fields(arguments) else {
            return Some(Err(ToolResult::text(ToolEnd::Failed, "arguments do not fit the tool: an object is wanted")));
        };
        let size = arguments.to_string().len();
        if size > self.limits.arguments {
            let text = format!("arguments are longer than {} bytes: {size}", self.limits.arguments);
            return Some(Err(ToolResult::text(ToolEnd::Failed, text)));
        }
        Some(Ok(ToolCall {
            id,
            name: name.to_owned(),
            title: call_title(&server.name, &offered, &given),
            // What a server says about its tools is a hint and opens no door, here or at a client.
            kind: ToolKind::Other,
            arguments: arguments.clone(),
            locations: Vec::new(),
            idempotent: false,
        }))
    }

    /// True if programs on this machine work for the session, also between two calls.
    pub fn has_programs(&self) -> bool {
        self.all_servers().iter().any(|server| server.spec.is_program())
    }

    /// True if a program on this machine works for this call.
    pub fn runs_program(&self, call: &ToolCall) -> bool {
        match self.find_tool(&call.name) {
            Some((server, _)) => server.spec.is_program(),
            None => {
                call.name == resources::READ_TOOL && self.all_servers().iter().any(|server| server.spec.is_program())
            }
        }
    }

    /// Runs a call that was described before and may run now; `None` if it is none of theirs.
    pub async fn call_tool(
        &self,
        call: &ToolCall,
        signals: mpsc::Sender<ToolEvent>,
        cancel: CancellationToken,
    ) -> Option<ToolResult> {
        let Some((server, offered)) = self.find_tool(&call.name) else {
            return self.run_resource_tool(call, &cancel).await;
        };
        let arguments = call_argument_fields(&call.arguments).unwrap_or_default();
        let patience = server.spec.patience;
        let OfferedTool { tool, definition, repeatable, .. } = offered;
        let session = self.env.session.clone();
        let wanted = ToolUse { session, tool, arguments, definition, repeatable, patience, signals, cancel };
        let mut result = match retry::call_with_retry(&server, &wanted).await {
            Ok(result) => content::tool_result_from_content(result, &self.limits),
            Err(error) => ToolResult::text(error.tool_end(), error.to_string()),
        };
        if result.end == ToolEnd::Failed
            && let Some(advice) = self.env.network_advice(&server.spec, &servers_result_text(&result))
        {
            result.content.push(ToolContent::Part { part: Part::text(format!("[{advice}]")) });
        }
        self.env.redactor_for(&server.spec).redact_result(&mut result);
        Some(result)
    }

    /// Asks whether the program behind a call that failed for want of the network may have it; true if it has it now.
    /// A yes is remembered.
    pub async fn offer_network(&self, call: &ToolCall, result: &ToolResult, cancel: &CancellationToken) -> bool {
        let Some((server, _)) = self.find_tool(&call.name) else { return false };
        let missed = result.end == ToolEnd::Failed
            && self.env.network_advice(&server.spec, &servers_result_text(result)).is_some();
        if !missed {
            return false;
        }
        let title = network_prompt::network_retry_title(&server.spec);
        let yes = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            reply = self.ask_person(&title, network_prompt::network_choices(), QuestionOrigin::Held) => reply.is_allowed(),
        };
        if yes {
            network_prompt::grant_network(&self.env, &server.spec);
            server.restart_server().await;
        }
        yes
    }

    async fn run_resource_tool(&self, call: &ToolCall, cancel: &CancellationToken) -> Option<ToolResult> {
        let all = self.all_servers();
        let mut result = tokio::select! {
            biased;
            () = cancel.cancelled() => ToolResult::text(ToolEnd::Cancelled, "cancelled"),
            result = resources::run_resource_call(&all, call, &self.limits) => result?,
        };
        all.iter().for_each(|server| self.env.redactor_for(&server.spec).redact_result(&mut result));
        Some(result)
    }

    pub(super) fn has_resources(&self) -> bool {
        !resources::listed_resource_tools(&self.all_servers()).is_empty()
    }

    pub(super) fn all_servers(&self) -> Vec<Arc<McpServer>> {
        let leases = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        leases.iter().map(|lease| Arc::clone(&lease.server)).collect()
    }

    fn offered_tools(&self) -> Vec<(Arc<McpServer>, OfferedTool)> {
        let of = |server: Arc<McpServer>| {
            let tools = server.current_view().catalogue.tools.clone();
            tools.into_iter().map(move |offered| (Arc::clone(&server), offered))
        };
        self.all_servers().into_iter().flat_map(of).collect()
    }

    fn usable_tools(&self) -> Vec<(Arc<McpServer>, OfferedTool)> {
        self.offered_tools().into_iter().filter(|(server, offered)| self.is_pinned(server, offered)).collect()
    }

    pub(super) fn find_tool(&self, name: &str) -> Option<(Arc<McpServer>, OfferedTool)> {
        self.usable_tools().into_iter().find(|(_, offered)| offered.spec.name == name)
    }

    pub(super) fn is_pinned(&self, server: &McpServer, offered: &OfferedTool) -> bool {
        pins::is_tool_pinned(&*self.pins, &server.spec.identity(), &offered.tool, &offered.definition)
    }
}

/// Asks a person whether a changed tool may be used as it is now.
async fn ask_about_changed_tool(
    session: SessionHandle,
    pins: Arc<dyn ToolPinStore>,
    server: Arc<McpServer>,
    offered: OfferedTool,
) {
    let title = format!(
        "{} changed its tool {} since it was first used. Use it as it is now? It says: {}",
        server.name, offered.tool, offered.spec.description
    );
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_always", "Use the changed tool", ChoiceKind::AllowAlways),
        choice("reject_once", "Leave it off", ChoiceKind::RejectOnce),
    ];
    if session.ask_person(&title, QuestionKind::Choose { choices }, QuestionOrigin::NonBlocking).await.is_allowed() {
        pins.pin(&server.spec.identity(), &offered.tool, &offered.definition);
        session.send_event(ServerEvent::Tools);
    }
}

/// The texts of a result.
fn servers_result_text(result: &ToolResult) -> String {
    let texts = result.content.iter().filter_map(|content| match content {
        ToolContent::Part { part: Part::Text { text } } => Some(text.as_str()),
        ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
