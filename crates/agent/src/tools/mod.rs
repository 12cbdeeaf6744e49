//! The built-in tools: what a model may use, how a call is described to people, and how it runs.

mod arguments;
mod builtin;
mod change;
mod edit;
mod environment;
pub(crate) mod family;
mod fetch;
mod files;
mod grep;
mod guard;
mod host;
mod html;
mod limits;
mod list;
mod locations;
mod output;
mod plan;
mod process;
pub(crate) mod propose;
mod read;
mod redact;
mod shell;
mod skill;
mod spawn;
mod walk;
mod watchdog;
mod workspace;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{
    ArtifactContent, Location, Plan, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind, ToolResult, Usage,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::mcp::bounded;
use crate::model::ToolSpec;
use crate::sandbox::{Network, Sandbox};

pub use builtin::{BuiltIn, BuiltIns, absence};
pub use environment::Environment;
pub use fetch::download;
pub use guard::{Blocked, Guard, Resolver, SystemResolver};
pub use host::{CommandEnd, CommandLine, Exit, Host, HostError, Live, LocalHost, Offers};
pub use limits::Limits;
pub use redact::Redactor;
pub use workspace::{Located, PathError, Workspace};

/// The tools of an agent. Adding one: a file beside this one, and a line in [`Toolbox::builtin`].
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    limits: Limits,
    redactor: Redactor,
    sandbox: Sandbox,
}

/// What a running tool may touch.
#[derive(Clone)]
pub struct ToolContext {
    /// Where files are.
    pub workspace: Arc<Workspace>,
    /// Who lends files and terminals.
    pub host: Arc<dyn Host>,
    /// Where it tells what happens meanwhile. Bounded: live output is dropped rather than waited for.
    pub signals: mpsc::Sender<Signal>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// What a running tool tells meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// What the tool shows now, whole.
    Shown(Vec<ToolContent>),
    /// The plan is now this.
    Plan(Plan),
    /// Something was put away under a name.
    Saved {
        /// Its name.
        name: String,
        /// Its version, from 0.
        version: u64,
        /// Its media type, if known.
        mime: Option<String>,
        /// What it is, unless it is large.
        content: Option<ArtifactContent>,
    },
    /// A sub-agent paid for a model call.
    Spent(Usage),
}

/// What surrounds the built-in tools: the server knows, the tools must not look.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// The environment of commands.
    pub environment: Environment,
    /// Which addresses may be fetched.
    pub guard: Guard,
    /// Hides secrets in everything a tool says.
    pub redactor: Redactor,
    /// Where the person keeps skills of their own.
    pub skills: Vec<PathBuf>,
    /// Puts fences around commands.
    pub sandbox: Sandbox,
    /// Whether commands find the network without asking for it.
    pub network: Network,
}

impl Toolbox {
    /// Read, write, edit, list, grep, shell, fetch, plan and skill, in bare surroundings.
    pub fn builtin(limits: Limits) -> Self {
        Self::within(limits, Surroundings::default())
    }

    /// The same, told about the environment, reachable peers and known secrets.
    pub fn within(limits: Limits, surroundings: Surroundings) -> Self {
        let Surroundings { environment, guard, redactor, skills, sandbox, network } = surroundings;
        let shell = shell::Shell { limits, environment, redactor: redactor.clone(), sandbox: sandbox.clone(), network };
        let tools: Vec<Box<dyn Tool>> = vec![
            Box::new(read::Read { limits }),
            Box::new(write::Write { limits }),
            Box::new(edit::Edit { limits }),
            Box::new(list::List { limits }),
            Box::new(grep::Grep { limits }),
            Box::new(shell),
            Box::new(fetch::Fetch { limits, guard }),
            Box::new(plan::SetPlan),
            Box::new(skill::LoadSkill { own: skills }),
            Box::new(propose::ProposePlan),
        ];
        let specs = tools.iter().map(|tool| tool.spec()).collect();
        Self { tools, specs, limits, redactor, sandbox }
    }

    /// True if its commands run inside of a fence.
    pub fn is_fenced(&self) -> bool {
        self.sandbox.is_in_force()
    }

    /// The tools as a model sees them.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// Checks name and arguments and describes the call for people and policies.
    ///
    /// An error is what the model is told instead: such a call never runs.
    pub fn describe(
        &self,
        id: ToolCallId,
        name: &str,
        arguments: Value,
        workspace: &Workspace,
    ) -> Result<ToolCall, ToolResult> {
        self.sketch(name, &arguments, workspace)
            .map(|sketch| ToolCall {
                id,
                name: name.to_owned(),
                title: sketch.title,
                kind: sketch.kind,
                arguments,
                locations: sketch.locations,
                idempotent: sketch.idempotent,
            })
            .map_err(|error| self.told(error.into()))
    }

    /// Runs a call that was described before and may run now. Its arguments are checked again.
    pub async fn run(&self, call: &ToolCall, context: &ToolContext) -> ToolResult {
        let result = match self.tool(&call.name) {
            Ok(tool) => tool.run(call, context).await.unwrap_or_else(ToolResult::from),
            Err(error) => error.into(),
        };
        self.told(result)
    }

    fn sketch(&self, name: &str, arguments: &Value, workspace: &Workspace) -> Result<Sketch, ToolError> {
        let tool = self.tool(name)?;
        arguments::within(arguments, self.limits.arguments)?;
        tool.sketch(arguments, workspace)
    }

    fn tool(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        let position = self.specs.iter().position(|spec| spec.name == name);
        position.map(|at| &*self.tools[at]).ok_or_else(|| {
            let known: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            ToolError::failed(format!("no such tool: {name:?} (there are: {})", known.join(", ")))
        })
    }

    /// What somebody else's tool gave, as the built-in ones give theirs: without secrets, and not too long. Secrets are
    /// hidden first, for half of one would not be known.
    pub(crate) fn lent(&self, result: ToolResult) -> ToolResult {
        bounded(self.told(result), &self.limits)
    }

    fn told(&self, mut result: ToolResult) -> ToolResult {
        self.redactor.result(&mut result);
        result
    }
}

/// One tool.
#[async_trait]
trait Tool: Send + Sync {
    /// Its name, purpose and arguments.
    fn spec(&self) -> ToolSpec;

    /// Checks the arguments and says what would happen.
    fn sketch(&self, arguments: &Value, workspace: &Workspace) -> Result<Sketch, ToolError>;

    /// Does it.
    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// What a call would do, in the words of its tool.
struct Sketch {
    title: String,
    kind: ToolKind,
    locations: Vec<Location>,
    idempotent: bool,
}

/// Why a tool did not do what was asked, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
struct ToolError {
    end: ToolEnd,
    message: String,
}

impl ToolError {
    fn failed(message: impl Into<String>) -> Self {
        Self { end: ToolEnd::Failed, message: message.into() }
    }

    fn cancelled() -> Self {
        Self { end: ToolEnd::Cancelled, message: "cancelled".into() }
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> Self {
        Self::text(error.end, error.message)
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<HostError> for ToolError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Cancelled => Self::cancelled(),
            HostError::Failed(message) => Self::failed(message),
        }
    }
}
