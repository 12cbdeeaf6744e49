//! `shell`: runs a command line.

use gander_domain::sanitize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Location, Part, ToolCall, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::shell_reads;
use crate::files::secret_files::{is_git_settings, secret_files};
use crate::permission::{LineReads, WorkspaceFolders, find_reads, paths_named_in_script, secret_path_gitattributes};
use crate::sandbox::{Network, Sandbox, network_failure};
use crate::{
    CommandEnd, CommandLine, Environment, Exit, Group, Limits, Live, Redactor, Tool, ToolContext, ToolEffect,
    ToolError, ToolPreview, Workspace, arguments,
};

pub(crate) const NAME: &str = "shell";

/// Git's attributes of secret files, as a file for commands to read.
const ATTRIBUTES: &str = "gitattributes";

/// Longer lines belong into a script: nobody reads them in a question.
const LONGEST: usize = 16 << 10;

pub(crate) struct Shell {
    pub(crate) limits: Limits,
    pub(crate) environment: Environment,
    pub(crate) redactor: Redactor,
    pub(crate) sandbox: Sandbox,
    /// What commands find without asking for it.
    pub(crate) network: Network,
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
    fn name(&self) -> &str {
        "shell"
    }

    fn group(&self) -> Group {
        Group::Run
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Exec
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            description: format!(
                "Runs a command line with bash in the workspace and returns its output (stdout and stderr as they came) \
                 and exit code. No terminal, no input. Processes left in the background are ended with the command. \
                 It is stopped after {} s unless timeout_seconds says otherwise. It may run in a sandbox: the \
                 workspace is writable, the system read-only, the home hidden, and there is no network unless network \
                 is true, which a person is asked about. A search of folders does not see files that may hold secrets, \
                 such as .env: name such a file to ask for it. Files that make other programs run something (settings of git, \
                 editors, agents and CI, hooks, start-up files of shells) cannot be changed there, or a person is asked \
                 afterwards: use write or edit for them. Prefer read, list, grep and edit over \
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
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let arguments: Arguments = arguments::parse_tool_arguments(arguments)?;
        let command = self.build_command(&arguments, workspace)?;
        let title = sanitize::sanitized_line(&command.line);
        Ok(ToolPreview {
            title: if arguments.network { format!("{title} ⟨with the network⟩") } else { title },
            kind: ToolKind::Execute,
            locations: shell_link_targets(&command.line, &command.cwd),
            idempotent: false,
        })
    }

    fn proposal(&self, arguments: &Value, workspace: &Workspace) -> Vec<ToolContent> {
        let command =
            arguments::parse_tool_arguments(arguments).and_then(|arguments| self.build_command(&arguments, workspace));
        let Ok(command) = command else { return Vec::new() };
        let (line, folder) = (sanitize::sanitized_text(&command.line), command.cwd.display());
        vec![ToolContent::Part { part: Part::text(format!("{line}\n\nin {folder}")) }]
    }

    fn find_objection(&self, arguments: &Value, workspace: &Workspace) -> Option<String> {
        shell_reads::shell_reads_objection(arguments, workspace)
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments::parse_tool_arguments(&call.arguments)?;
        let command = self.build_command(&arguments, &context.workspace)?;
        let command = self.sandboxed_command(command, &arguments, context).await?;
        let live =
            Live { cancel: context.cancel.clone(), redactor: self.redactor.clone(), signals: context.signals.clone() };
        let end = context.run_command(&command, &live).await?;
        let closed =
            command.wrap.is_some() && end.terminal.is_none() && self.network_access(&arguments) == Network::Closed;
        let missed = closed && end.exit != Exit::Code(0) && network_failure::is_network_failure(&end.output);
        let mut result = shell_command_result(&command, end);
        if missed {
            result.content.push(ToolContent::Part { part: Part::text(network_failure::HINT) });
            if let Some(raw) = result.raw.as_mut().and_then(Value::as_object_mut) {
                raw.insert(network_failure::MARK.to_owned(), Value::Bool(true));
            }
        }
        Ok(result)
    }
}

impl Shell {
    fn build_command(&self, arguments: &Arguments, workspace: &Workspace) -> Result<CommandLine, ToolError> {
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
            cwd: shell_working_directory(arguments.cwd.as_deref(), workspace)?,
            environment: self.environment.clone(),
            timeout: asked.clamp(Duration::from_secs(1), self.limits.longest_command),
            output: self.limits.output,
            wrap: None,
        })
    }

    /// The command inside of a policy, if a layer of the sandbox works. A line that only reads gets a closer one.
    async fn sandboxed_command(
        &self,
        command: CommandLine,
        arguments: &Arguments,
        context: &ToolContext,
    ) -> Result<CommandLine, ToolError> {
        let (rule_folders, folders) = (context.workspace.rule_folders(), context.workspace.root_folders());
        let lent = !context.host.is_here() && context.host.offers().terminal;
        let reads = find_reads(&command.line, &command.cwd, &rule_folders).filter(|reads| reads.whole && !lent);
        let (sandbox, access, asked) = (self.sandbox.clone(), self.network_access(arguments), arguments.network);
        // Folders are looked through, for what must stay as it is and for what must not be seen.
        let sandboxed = tokio::task::spawn_blocking(move || match reads {
            Some(reads) => {
                let access = if asked { Network::Open } else { Network::Closed };
                read_only_shell_command(command, &reads, &sandbox, (&folders, access), &rule_folders)
            }
            None => {
                let wrap = sandbox.policy_for(&folders, access).map(|policy| sandbox.wrap_command(&policy)).transpose();
                Ok(CommandLine { wrap: wrap.map_err(shell_sandbox_error)?, ..command })
            }
        });
        sandboxed.await.map_err(|error| shell_sandbox_error(std::io::Error::other(error)))?
    }

    fn network_access(&self, arguments: &Arguments) -> Network {
        if arguments.network { Network::Open } else { self.network }
    }
}

/// A line that only reads, in a policy in which nothing can be written, secret files below searched folders are hidden,
/// and git starts nothing that a repository names.
fn read_only_shell_command(
    command: CommandLine,
    reads: &LineReads,
    sandbox: &Sandbox,
    (folders, access): (&[PathBuf], Network),
    rule_folders: &WorkspaceFolders,
) -> Result<CommandLine, ToolError> {
    let Some(policy) = sandbox.policy_for(folders, access) else { return Ok(command) };
    let attributes =
        sandbox.file_for_commands(ATTRIBUTES, &secret_path_gitattributes()).map_err(shell_sandbox_error)?;
    let secrets = secret_files(&reads.searched, rule_folders).map_err(|error| ToolError::failed(error.to_string()))?;
    // git itself must be able to read its settings. A line that searches them beside it was asked about.
    let secrets = secrets.into_iter().filter(|path| reads.repositories.is_empty() || !is_git_settings(path));
    let policy = policy.read_only(secrets).with_readable_paths([attributes.clone()]);
    Ok(CommandLine {
        line: reads.rewrite_safely(&command.line),
        environment: command.environment.for_reading(folders, &attributes),
        wrap: Some(sandbox.wrap_command(&policy).map_err(shell_sandbox_error)?),
        ..command
    })
}

fn shell_sandbox_error(error: std::io::Error) -> ToolError {
    ToolError::failed(format!("the sandbox cannot be put up: {error}"))
}

fn shell_working_directory(given: Option<&str>, workspace: &Workspace) -> Result<PathBuf, ToolError> {
    let located = workspace.locate_path(given.unwrap_or("."))?;
    workspace.open_directory(&located)?;
    Ok(located.absolute_path().to_owned())
}

/// Where links among the words really lead: policies look at these too.
fn shell_link_targets(line: &str, cwd: &Path) -> Vec<Location> {
    let links = paths_named_in_script(line, cwd).into_iter().filter_map(|path| {
        let real = path.canonicalize().ok()?;
        (real.as_path() != path.components().collect::<PathBuf>()).then_some(real)
    });
    links.map(|path| Location::file(path.to_string_lossy())).collect()
}

fn shell_command_result(command: &CommandLine, end: CommandEnd) -> ToolResult {
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
