//! The tools of an agent, with what surrounds them.

use std::path::PathBuf;
use std::sync::Arc;

use gander_domain::{ToolCall, ToolCallId, ToolContent, ToolEnd, ToolResult};
use serde_json::Value;

use crate::output::limit_output_result;
use crate::protected::ProtectedFiles;
use crate::sandbox::{Network, Sandbox};
use crate::{
    Environment, Guard, Limits, ListedTool, Redactor, Tool, ToolContext, ToolError, Workspace, arguments, blocking,
    builtin,
};

/// The tools of an agent. Adding one: a file beside this one, and a line in [`Toolbox::builtin`].
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    listed: Arc<[ListedTool]>,
    limits: Limits,
    redactor: Redactor,
    sandbox: Sandbox,
    network: Network,
    protected: ProtectedFiles,
}

/// What surrounds the built-in tools: the server knows, the tools must not look.
#[derive(Clone, Default)]
pub struct ToolEnv {
    /// The environment of commands.
    pub environment: Environment,
    /// Which addresses may be fetched.
    pub guard: Guard,
    /// Hides secrets in everything a tool says.
    pub redactor: Redactor,
    /// What commands run in.
    pub sandbox: Sandbox,
    /// Whether commands find the network without asking for it.
    pub network: Network,
    /// What the tools of every session share.
    pub shared: SharedToolState,
}

/// What the tools of all sessions of a server share, whichever settings they were made with. Cheap to clone.
#[derive(Clone, Default)]
pub struct SharedToolState {
    protected: ProtectedFiles,
    write_lock: builtin::change::WriteLock,
    blocking: blocking::BlockingPool,
}

impl SharedToolState {
    /// With what keeps files that make something run as they are.
    pub fn new(protected: ProtectedFiles) -> Self {
        Self { protected, ..Self::default() }
    }
}

impl Toolbox {
    /// Read, write, edit, list, grep, shell, fetch and plan, in bare surroundings.
    pub fn builtin(limits: Limits) -> Self {
        Self::with_env(limits, ToolEnv::default())
    }

    /// The same, told about the environment, reachable peers and known secrets.
    pub fn with_env(limits: Limits, env: ToolEnv) -> Self {
        let ToolEnv { environment, guard, redactor, sandbox, network, shared } = env;
        let SharedToolState { protected, write_lock: lock, blocking } = shared;
        let shell = builtin::shell::Shell {
            limits,
            environment,
            redactor: redactor.clone(),
            sandbox: sandbox.clone(),
            network,
        };
        let tools: Vec<Box<dyn Tool>> = vec![
            Box::new(builtin::read::Read { limits }),
            Box::new(builtin::write::Write { limits, blocking: blocking.clone(), lock: lock.clone() }),
            Box::new(builtin::edit::Edit { limits, blocking: blocking.clone(), lock }),
            Box::new(builtin::list::List { limits }),
            Box::new(builtin::grep::Grep { limits }),
            Box::new(shell),
            Box::new(builtin::fetch::Fetch { limits, guard, blocking }),
            Box::new(builtin::plan::SetPlan),
        ];
        let listed = tools.iter().map(|tool| tool.list_entry()).collect();
        Self { tools, listed, limits, redactor, sandbox, network, protected }
    }

    /// Adds one tool more.
    #[must_use]
    pub fn with_tool(mut self, tool: Box<dyn Tool>) -> Self {
        self.listed = self.listed.iter().cloned().chain([tool.list_entry()]).collect();
        self.tools.push(tool);
        self
    }

    /// True if its commands run in a sandbox.
    pub fn is_sandboxed(&self) -> bool {
        self.sandbox.is_in_force()
    }

    /// True if a command that did not ask for the network has none.
    pub fn is_isolated(&self) -> bool {
        self.is_sandboxed() && self.network == Network::Closed
    }

    /// Keeps files that make something run as they are.
    pub fn protected_files(&self) -> &ProtectedFiles {
        &self.protected
    }

    /// The folders that its commands may write.
    pub fn writable_paths(&self, workspace: &Workspace) -> Vec<PathBuf> {
        self.sandbox.lent_folders(&workspace.root_folders())
    }

    /// What the files of a workspace hold against a call that nobody would be asked about otherwise.
    pub fn find_objection(&self, call: &ToolCall, workspace: &Workspace) -> Option<String> {
        self.find_tool(&call.name)?.find_objection(&call.arguments, workspace)
    }

    /// What a call would do, for the person who is asked about it: without secrets, and not too long.
    pub fn proposal(&self, call: &ToolCall, workspace: &Workspace) -> Vec<ToolContent> {
        let content =
            self.find_tool(&call.name).map(|tool| tool.proposal(&call.arguments, workspace)).unwrap_or_default();
        self.redact_and_limit(ToolResult { end: ToolEnd::Completed, content, raw: None }).content
    }

    /// Its tools, in the order in which models see them.
    pub fn listed_tools(&self) -> Arc<[ListedTool]> {
        Arc::clone(&self.listed)
    }

    /// Checks name and arguments and describes the call for people and policies.
    ///
    /// An error is what the model is told instead: such a call never runs.
    pub fn describe_call(
        &self,
        id: ToolCallId,
        name: &str,
        arguments: &Value,
        workspace: &Workspace,
    ) -> Result<ToolCall, ToolResult> {
        let described = self.require_tool(name).and_then(|tool| {
            arguments::check_argument_size(arguments, self.limits.arguments)?;
            tool.describe_call(id, arguments, workspace)
        });
        described.map_err(|error| self.redact_result(error.into()))
    }

    /// Runs a call that was described before and may run now. Its arguments are checked again.
    pub async fn run_tool(&self, call: &ToolCall, context: &ToolContext) -> ToolResult {
        let result = match self.require_tool(&call.name) {
            Ok(tool) => tool.run(call, context).await.unwrap_or_else(ToolResult::from),
            Err(error) => error.into(),
        };
        self.redact_result(result)
    }

    /// The tool of this name.
    pub fn find_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    fn require_tool(&self, name: &str) -> Result<&dyn Tool, ToolError> {
        self.find_tool(name).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
            ToolError::failed(format!("no such tool: {name:?} (there are: {})", known.join(", ")))
        })
    }

    /// What somebody else's tool gave, as the built-in ones give theirs: without secrets, and not too long. Secrets are
    /// hidden first, for half of one would not be known.
    pub fn redact_and_limit(&self, result: ToolResult) -> ToolResult {
        limit_output_result(self.redact_result(result), &self.limits)
    }

    fn redact_result(&self, mut result: ToolResult) -> ToolResult {
        self.redactor.redact_result(&mut result);
        result
    }
}
