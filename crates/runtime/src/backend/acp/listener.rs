//! The client's side of an agent behind a session: its updates go to the run under way, its files and commands to a host.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, ElicitationAction, ElicitationCapabilities, ElicitationFormCapabilities,
    FileSystemCapabilities, KillTerminalRequest, KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionNotification, SessionUpdate, TerminalOutputRequest, TerminalOutputResponse,
    ToolCallContent, WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use gander_client::{Code, Error, Handler};
use gander_tools::permission::is_protected_path;
use gander_tools::sandbox::Wrap;
use gander_tools::{Environment, Host, HostError, LocalHost};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::agent_turn::ToldUpdate;
use super::learned_offers::LearnedOffers;
use super::prompt_run::AgentEvent;
use super::terminals::{TerminalPlace, Terminals};

/// The client's side of an agent behind one session.
pub(super) struct Listener {
    /// The run under way; between runs nobody listens.
    run: Mutex<Option<ListeningRun>>,
    /// This machine, confined to the session's folders.
    local: Arc<LocalHost>,
    folder: PathBuf,
    environment: Environment,
    /// The sandbox around commands of an agent whose own process is in one.
    wrap: Option<Wrap>,
    terminals: Terminals,
    offers: Arc<LearnedOffers>,
}

/// Where what the agent says and asks goes.
#[derive(Clone)]
pub(super) struct ListeningRun {
    pub(super) events: mpsc::Sender<AgentEvent>,
    /// What the prompting client lends.
    pub(super) host: Option<Arc<dyn Host>>,
}

impl Listener {
    pub(super) fn new(
        local: Arc<LocalHost>,
        folder: PathBuf,
        environment: Environment,
        offers: Arc<LearnedOffers>,
    ) -> Self {
        let (run, terminals) = (Mutex::default(), Terminals::default());
        Self { run, local, folder, environment, wrap: None, terminals, offers }
    }

    /// The same for an agent in a sandbox: commands that it has us run are in it too.
    pub(super) fn with_wrap(mut self, wrap: Wrap) -> Self {
        self.wrap = Some(wrap);
        self
    }

    /// From now on this run hears the agent, or nobody does.
    pub(super) fn set_run(&self, run: Option<ListeningRun>) {
        *self.lock_run() = run;
    }

    fn current_run(&self) -> Option<ListeningRun> {
        self.lock_run().clone()
    }

    fn lock_run(&self) -> MutexGuard<'_, Option<ListeningRun>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_event(&self, event: AgentEvent) {
        if let Some(run) = self.current_run() {
            // Nobody hears it only if the run is over.
            run.events.send(event).await.ok();
        }
    }

    /// Takes from an update what the agent offers. What is left goes to the run.
    fn learn_from_update(&self, update: SessionUpdate) -> SessionUpdate {
        if let SessionUpdate::AvailableCommandsUpdate(commands) = &update {
            self.offers.learn_commands(&json!(commands)["availableCommands"]);
        }
        if let SessionUpdate::ConfigOptionUpdate(options) = &update {
            self.offers.learn_options(&json!(options)["configOptions"]);
        }
        self.without_terminals(update)
    }

    /// The terminals of an agent are ours, and nobody else knows them: what was printed is shown in their place, unless the
    /// agent tells that beside.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn without_terminals(&self, mut update: SessionUpdate) -> SessionUpdate {
        let content = match &mut update {
            SessionUpdate::ToolCall(call) => Some(&mut call.content),
            SessionUpdate::ToolCallUpdate(change) => change.fields.content.as_mut(),
            _ => None,
        };
        if let Some(content) = content {
            let is_terminal = |shown: &ToolCallContent| matches!(shown, ToolCallContent::Terminal(_));
            let tells_beside = content.iter().any(|shown| !is_terminal(shown));
            let printed = |shown: ToolCallContent| match shown {
                ToolCallContent::Terminal(_) if tells_beside => None,
                ToolCallContent::Terminal(terminal) => {
                    let output = self.terminals.output(&terminal.terminal_id.0).ok().map(|shown| shown.output);
                    output.filter(|text| !text.is_empty()).map(ToolCallContent::from)
                }
                told => Some(told),
            };
            *content = std::mem::take(content).into_iter().filter_map(printed).collect();
        }
        update
    }

    /// The attached editor where it lends this, else this machine.
    fn host(&self, is_lent: impl Fn(&dyn Host) -> bool) -> Arc<dyn Host> {
        let lent = self.current_run().and_then(|run| run.host).filter(|host| is_lent(&**host));
        lent.unwrap_or_else(|| Arc::clone(&self.local) as Arc<dyn Host>)
    }
}

#[async_trait]
impl Handler for Listener {
    fn offers(&self) -> ClientCapabilities {
        let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
        let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
        ClientCapabilities::new().fs(files).terminal(true).elicitation(forms)
    }

    fn wants_whole_updates(&self) -> bool {
        true
    }

    async fn updated_whole(&self, params: Value, known: Option<SessionNotification>) {
        let known = known.map(|known| self.learn_from_update(known.update));
        self.send_event(AgentEvent::Updated(Box::new(ToldUpdate { known, whole: Some(params) }))).await;
    }

    async fn updated(&self, update: SessionNotification) {
        let update = self.learn_from_update(update.update);
        self.send_event(AgentEvent::Updated(Box::new(update.into()))).await;
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let (answer, answered) = oneshot::channel();
        self.send_event(AgentEvent::Permission(Box::new(request), answer)).await;
        Ok(answered.await.unwrap_or_else(|_| RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)))
    }

    async fn elicit(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        let (answer, answered) = oneshot::channel();
        self.send_event(AgentEvent::Form(Box::new(request), answer)).await;
        Ok(answered.await.unwrap_or_else(|_| CreateElicitationResponse::new(ElicitationAction::Cancel)))
    }

    async fn read_text_file(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let text = self.host(|host| host.offers().read).read_text(&request.path).await;
        let text = text.map_err(|error| listener_host_error(&request.path, &error))?;
        Ok(ReadTextFileResponse::new(cut_listener_lines(text, request.line, request.limit)))
    }

    async fn write_text_file(&self, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        // An agent in a sandbox does not get through us what would make git, an editor or a shell run something outside of it.
        if self.wrap.is_some() && is_protected_path(request.path.strip_prefix(&self.folder).unwrap_or(&request.path)) {
            return Err(Error::invalid_params(format!(
                "an agent in a sandbox does not write this file: {}",
                request.path.display()
            )));
        }
        let written = self.host(|host| host.offers().write).write_text(&request.path, &request.content).await;
        written.map(|()| WriteTextFileResponse::new()).map_err(|error| listener_host_error(&request.path, &error))
    }

    async fn create_terminal(&self, request: CreateTerminalRequest) -> Result<CreateTerminalResponse, Error> {
        // A terminal that an editor lends knows nothing of the sandbox.
        let host = self.host(|host| self.wrap.is_none() && host.offers().terminal);
        let (folder, environment, wrap) = (self.folder.clone(), self.environment.clone(), self.wrap.clone());
        let id = self.terminals.create(&request, host, TerminalPlace { folder, environment, wrap })?;
        Ok(CreateTerminalResponse::new(id))
    }

    async fn terminal_output(&self, request: TerminalOutputRequest) -> Result<TerminalOutputResponse, Error> {
        self.terminals.output(&request.terminal_id.0)
    }

    async fn wait_for_terminal_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse, Error> {
        self.terminals.wait_for_exit(&request.terminal_id.0).await.map(WaitForTerminalExitResponse::new)
    }

    async fn kill_terminal(&self, request: KillTerminalRequest) -> Result<KillTerminalResponse, Error> {
        self.terminals.kill(&request.terminal_id.0).map(|()| KillTerminalResponse::new())
    }

    async fn release_terminal(&self, request: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse, Error> {
        self.terminals.release(&request.terminal_id.0).map(|()| ReleaseTerminalResponse::new())
    }
}

/// So many lines from this one on, counted from 1.
fn cut_listener_lines(text: String, line: Option<u32>, limit: Option<u32>) -> String {
    if line.is_none() && limit.is_none() {
        return text;
    }
    let from = line.map_or(0, |line| line.saturating_sub(1) as usize);
    let count = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(from).take(count).collect()
}

fn listener_host_error(path: &Path, error: &HostError) -> Error {
    Error::new(Code::Internal, format!("{error}: {}", path.display()))
}
