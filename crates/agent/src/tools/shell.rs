//! `shell`: runs a command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Location, Part, ToolCall, ToolContent, ToolEnd, ToolKind, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    CommandEnd, CommandLine, Environment, Exit, Limits, Live, Redactor, Sketch, Tool, ToolContext, ToolError,
    Workspace, arguments,
};
use crate::model::ToolSpec;
use crate::permission::{named_paths, show};
use crate::sandbox::{Network, Sandbox, Wrap, offline};

/// Longer lines belong into a script: nobody reads them in a question.
const LONGEST: usize = 16 << 10;

pub(super) struct Shell {
    pub(super) limits: Limits,
    pub(super) environment: Environment,
    pub(super) redactor: Redactor,
    pub(super) sandbox: Sandbox,
    /// What commands find without asking for it.
    pub(super) network: Network,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    network: bool,
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell".into(),
            description: format!(
                "Runs a command line with bash in the workspace and returns its output (stdout and stderr as they came) \
                 and exit code. No terminal, no input. Processes left in the background are ended with the command. \
                 It is stopped after {} s unless timeout_seconds says otherwise. It may run in a sandbox: the \
                 workspace is writable, the system read-only, the home hidden, and there is no network unless network \
                 is true, which a person is asked about. Prefer read, list, grep and edit over \
                 cat, find, grep and sed.",
                self.limits.command.as_secs()
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line"},
                    "cwd": {"type": "string", "description": "Where to run it; default: the workspace's root"},
                    "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": self.limits.longest_command.as_secs()},
                    "network": {"type": "boolean", "description": "True if it needs the network; a person is asked"}
                },
                "required": ["command"],
                "additionalProperties": false
            }),
        }
    }

    fn sketch(&self, arguments: &Value, workspace: &Workspace) -> Result<Sketch, ToolError> {
        let arguments: Arguments = arguments::parse(arguments)?;
        let command = self.command(&arguments, workspace)?;
        let title = show::line(&command.line);
        Ok(Sketch {
            title: if arguments.network { format!("{title} ⟨with the network⟩") } else { title },
            kind: ToolKind::Execute,
            locations: detours(&command.line, &command.cwd),
            idempotent: false,
        })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments::parse(&call.arguments)?;
        let mut command = self.command(&arguments, &context.workspace)?;
        command.wrap = self.wrap(&arguments, &context.workspace)?;
        let live =
            Live { cancel: context.cancel.clone(), redactor: self.redactor.clone(), signals: context.signals.clone() };
        let end = context.run_command(&command, &live).await?;
        let closed = command.wrap.is_some() && end.terminal.is_none() && self.access(&arguments) == Network::Closed;
        let missed = closed && end.exit != Exit::Code(0) && offline::missed(&end.output);
        let mut result = result(&command, end);
        if missed {
            result.content.push(ToolContent::Part { part: Part::text(offline::HINT) });
            if let Some(raw) = result.raw.as_mut().and_then(Value::as_object_mut) {
                raw.insert(offline::MARK.to_owned(), Value::Bool(true));
            }
        }
        Ok(result)
    }
}

impl Shell {
    fn command(&self, arguments: &Arguments, workspace: &Workspace) -> Result<CommandLine, ToolError> {
        let line = arguments.command.as_str();
        match line {
            _ if line.trim().is_empty() => return Err(ToolError::failed("command is empty")),
            _ if line.contains('\0') => return Err(ToolError::failed("command holds a NUL character")),
            _ if line.len() > LONGEST => {
                return Err(ToolError::failed(format!(
                    "command is longer than {LONGEST} bytes, write a script: {}",
                    line.len()
                )));
            }
            _ => {}
        }
        let asked = arguments.timeout_seconds.map_or(self.limits.command, Duration::from_secs);
        Ok(CommandLine {
            line: line.to_owned(),
            cwd: directory(arguments.cwd.as_deref(), workspace)?,
            environment: self.environment.clone(),
            timeout: asked.clamp(Duration::from_secs(1), self.limits.longest_command),
            output: self.limits.output,
            wrap: None,
        })
    }

    /// What puts a fence around the command; none where no layer of the sandbox works.
    fn wrap(&self, arguments: &Arguments, workspace: &Workspace) -> Result<Option<Wrap>, ToolError> {
        let place = workspace.place();
        let folders: Vec<PathBuf> = std::iter::once(place.root).chain(place.extra).collect();
        let fence = self.sandbox.fence(&folders, self.access(arguments));
        let wrap = fence.map(|fence| self.sandbox.wrap(&fence)).transpose();
        wrap.map_err(|error| ToolError::failed(format!("the sandbox cannot be put up: {error}")))
    }

    fn access(&self, arguments: &Arguments) -> Network {
        if arguments.network { Network::Open } else { self.network }
    }
}

fn directory(given: Option<&str>, workspace: &Workspace) -> Result<PathBuf, ToolError> {
    let located = workspace.locate(given.unwrap_or("."))?;
    workspace.open_directory(&located)?;
    Ok(located.absolute().to_owned())
}

/// Where links among the words really lead: policies look at these too.
fn detours(line: &str, cwd: &Path) -> Vec<Location> {
    let links = named_paths(line, cwd).into_iter().filter_map(|path| {
        let real = path.canonicalize().ok()?;
        (real.as_path() != path.components().collect::<PathBuf>()).then_some(real)
    });
    links.map(|path| Location { path: path.to_string_lossy().into_owned(), line: None }).collect()
}

fn result(command: &CommandLine, end: CommandEnd) -> ToolResult {
    let (how, word, code) = match end.exit {
        Exit::Code(0) => (ToolEnd::Completed, String::new(), Some(0)),
        Exit::Code(code) => (ToolEnd::Failed, format!("[exit code {code}]"), Some(code)),
        Exit::Signal(signal) => (ToolEnd::Failed, format!("[ended by signal {signal}]"), None),
        Exit::TimedOut => (ToolEnd::Failed, format!("[timed out after {} s]", command.timeout.as_secs()), None),
        Exit::Cancelled => (ToolEnd::Cancelled, "[cancelled]".to_owned(), None),
    };
    let output = end.output.trim_end();
    let text = match (output.is_empty(), word.is_empty()) {
        (true, true) => "[no output]".to_owned(),
        (true, false) => word,
        (false, true) => output.to_owned(),
        (false, false) => format!("{output}\n{word}"),
    };
    let terminal = end.terminal.map(|id| ToolContent::Terminal { id });
    let content = terminal.into_iter().chain([ToolContent::Part { part: Part::text(text) }]).collect();
    ToolResult { end: how, content, raw: Some(json!({"exit_code": code})) }
}
