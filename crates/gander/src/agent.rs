//! An agent as its author describes it: who it is, what it can do, and the handler that answers prompts.

use std::path::PathBuf;
use std::sync::Arc;

use gander_domain::{AgentManifest, Capability, Mode, SlashCommand, SlashCommandKind};
use gander_services::agents;
use gander_services::sessions::SessionIds;
use gander_store::Store;

pub use crate::capabilities::Capabilities;
use crate::handler::{HandlerBackend, PromptHandler, PromptRequest, PromptResult, UpdateSink};

/// An agent. Describe it, give it a handler, serve it:
///
/// ```
/// use gander::testing::Harness;
/// use gander::{Agent, AgentInfo, Capabilities, Command, Mode, PromptRequest, PromptResult, StopReason, UpdateSink};
///
/// async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
///     match request.command() {
///         Some(command) if command.name == "shout" => sink.text(command.input.to_uppercase()).await?,
///         Some(_) | None => sink.text(request.text()).await?,
///     }
///     Ok(StopReason::EndTurn)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::new(AgentInfo::new("echo", "1.0.0").title("Echo").description("Says what it hears"))
///     .capabilities(Capabilities::new().image())
///     .modes([Mode::new("plain", "Plain", "Word by word")])
///     .commands([Command::new("shout", "Say it loud").input("what to say")])
///     .on_prompt(answer);
/// // In `main`: `agent.serve().await`. In a test, without sockets:
/// let harness = Harness::start(agent).await?;
/// assert_eq!(harness.new_session().await?.prompt("/shout hello").await?.text, "HELLO");
/// # Ok(())
/// # }
/// ```
///
/// Without a handler there is nothing to serve, and the compiler says so:
///
/// ```compile_fail
/// # async fn example() {
/// gander::Agent::new(gander::AgentInfo::new("echo", "1.0.0")).serve().await;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Agent<H = PromptHandler> {
    info: AgentInfo,
    capabilities: Capabilities,
    modes: Vec<Mode>,
    commands: Vec<Command>,
    data_directory: Option<PathBuf>,
    session_ids: SessionIds,
    handler: H,
}

/// The handler of an agent that has none yet.
#[derive(Clone, Copy, Debug)]
pub struct NoHandler;

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    name: String,
    version: String,
    title: Option<String>,
    description: String,
    skills: Vec<Capability>,
}

/// A slash command that the agent offers. A prompt that begins with it arrives with
/// [`PromptRequest::command`] set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    name: String,
    description: String,
    input: String,
}

impl AgentInfo {
    /// An agent of this name and version. The name is part of addresses: lower-case letters, digits, `-` and `_`.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let (name, version) = (name.into(), version.into());
        Self { name, version, title: None, description: String::new(), skills: Vec::new() }
    }

    /// What people see instead of the name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// One paragraph: clients that choose among agents read it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Something it can do, in a name and a sentence: a skill of its A2A card, a capability in ACP-REST.
    #[must_use]
    pub fn skill(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.skills.push(Capability { name: name.into(), description: description.into() });
        self
    }
}

impl Command {
    /// A command without input.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), input: String::new() }
    }

    /// What is typed after its name, in a few words.
    #[must_use]
    pub fn input(mut self, hint: impl Into<String>) -> Self {
        self.input = hint.into();
        self
    }
}

impl Agent<NoHandler> {
    /// An agent that takes and gives text.
    pub fn new(info: AgentInfo) -> Self {
        Self {
            info,
            capabilities: Capabilities::new(),
            modes: Vec::new(),
            commands: Vec::new(),
            data_directory: None,
            session_ids: SessionIds::Random,
            handler: NoHandler,
        }
    }

    /// Answers prompts with this function. It is called once per prompt; if the process dies meanwhile, the run has failed.
    pub fn on_prompt<H, F>(self, handler: H) -> Agent
    where
        H: Fn(PromptRequest, UpdateSink) -> F + Send + Sync + 'static,
        F: Future<Output = PromptResult> + Send + 'static,
    {
        self.with_handler(PromptHandler::in_memory(handler))
    }

    /// Answers prompts with a function that is called again from its beginning after an answer and after a restart, and
    /// then repeats nothing that was done: see [`handler`](crate::handler).
    pub fn on_durable_prompt<H, F>(self, handler: H) -> Agent
    where
        H: Fn(PromptRequest, UpdateSink) -> F + Send + Sync + 'static,
        F: Future<Output = PromptResult> + Send + 'static,
    {
        self.with_handler(PromptHandler::durable(handler))
    }

    fn with_handler(self, handler: PromptHandler) -> Agent {
        let Self { info, capabilities, modes, commands, data_directory, session_ids, handler: NoHandler } = self;
        Agent { info, capabilities, modes, commands, data_directory, session_ids, handler }
    }
}

impl<H> Agent<H> {
    /// What it takes and can do.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The modes that a session can be in; the first is the default.
    #[must_use]
    pub fn modes(mut self, modes: impl IntoIterator<Item = Mode>) -> Self {
        self.modes = modes.into_iter().collect();
        self
    }

    /// The slash commands that it offers.
    #[must_use]
    pub fn commands(mut self, commands: impl IntoIterator<Item = Command>) -> Self {
        self.commands = commands.into_iter().collect();
        self
    }

    /// Where sessions, tokens and settings lie. Without it: a folder of the agent's name below `$XDG_DATA_HOME`.
    #[must_use]
    pub fn data_directory(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_directory = Some(folder.into());
        self
    }

    /// How new sessions are called: by random ids, or `session-1`, `session-2` and so on.
    #[must_use]
    pub fn session_ids(mut self, ids: SessionIds) -> Self {
        self.session_ids = ids;
        self
    }

    /// The name it is known by.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.info.version
    }

    pub(crate) fn chosen_data_directory(&self) -> Option<&PathBuf> {
        self.data_directory.as_ref()
    }

    pub(crate) fn chosen_session_ids(&self) -> SessionIds {
        self.session_ids
    }

    fn manifest(&self) -> AgentManifest {
        let AgentInfo { name, version, title, description, skills } = self.info.clone();
        let Capabilities { image, audio, load_session, outputs } = self.capabilities.clone();
        let mut manifest = AgentManifest::new(&name, title.unwrap_or_else(|| name.clone()), description);
        manifest.version = Some(version);
        manifest.capabilities = skills;
        manifest.load_session = load_session;
        manifest.takes.extend(image.then(|| "image/*".to_owned()));
        manifest.takes.extend(audio.then(|| "audio/*".to_owned()));
        manifest.gives.extend(outputs);
        if !self.modes.is_empty() {
            manifest.modes.clone_from(&self.modes);
        }
        manifest
    }
}

impl Agent {
    pub(crate) fn into_service_agent(self, store: &Arc<dyn Store>) -> agents::Agent {
        let manifest = self.manifest();
        let commands = self.commands.into_iter().map(|command| SlashCommand {
            kind: SlashCommandKind::Agent,
            name: command.name,
            description: command.description,
            hint: command.input,
        });
        let backend = HandlerBackend { handler: self.handler, commands: commands.collect(), store: Arc::clone(store) };
        agents::Agent::new(manifest, Arc::new(backend))
    }
}
