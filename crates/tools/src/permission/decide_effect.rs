//! What a call is about, in the words of the permission rules.

use gander_domain::sanitize;
use std::path::{Path, PathBuf};

use gander_domain::{Policy, ToolCall};
use serde_json::Value;

use super::reads::LineReads;
use super::script::{self, ShellScript, SimpleCommand};
use super::{
    CallContext, Grant, Rule, Scope, Stand, WorkspaceFolders, canonical_permission_json, is_protected_path,
    is_secret_path, permission_call_fingerprint, programs,
};
use crate::tool_effect::ToolEffect;

/// What one call does: its tool's effect, with what of the call the rules look at.
pub(super) enum CallEffect {
    /// Looking at files.
    Read { paths: Vec<PathBuf> },
    /// Noting something down, loading a skill, giving a result, using a recipe.
    Internal,
    /// Changing what the server keeps for its owner, in versions.
    StoreWrite,
    /// Changing a file. What the file's text holds against it makes it exactly this call, for whoever allowed changes of
    /// the file was not shown that.
    FileWrite { path: PathBuf, objected: Option<Scope> },
    /// Running a line.
    Exec { line: String, cwd: PathBuf, script: ShellScript, touched: Vec<PathBuf>, network: Option<String> },
    /// Getting something from elsewhere.
    Network { url: String, host: String, origin: String, given: String },
    /// Anything else.
    Unknown { tool: String, fingerprint: String },
}

impl CallEffect {
    /// A call that lacks what its tool's effect is about is judged as one of an unknown tool.
    pub(super) fn from_call(call: &ToolCall, context: &CallContext) -> Self {
        Self::from_arguments(call, context).unwrap_or_else(|| Self::Unknown {
            tool: call.name.clone(),
            fingerprint: permission_call_fingerprint(call),
        })
    }

    fn from_arguments(call: &ToolCall, context: &CallContext) -> Option<Self> {
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut paths: Vec<PathBuf> = call.locations.iter().map(|location| PathBuf::from(&location.path)).collect();
        match context.effect {
            ToolEffect::Read if !paths.is_empty() => Some(Self::Read { paths }),
            ToolEffect::FileWrite if paths.len() == 1 => {
                let scope = || Scope::Call { tool: call.name.clone(), fingerprint: permission_call_fingerprint(call) };
                let objected = context.objection.as_ref().map(|_| scope());
                paths.pop().map(|path| Self::FileWrite { path, objected })
            }
            ToolEffect::Internal => Some(Self::Internal),
            ToolEffect::StoreWrite => Some(Self::StoreWrite),
            ToolEffect::Exec => {
                let line = text("command")?;
                let cwd = context.folders.root.join(text("cwd").unwrap_or_default());
                let network = call.arguments.get("network") == Some(&Value::Bool(true));
                let network = network.then(|| permission_call_fingerprint(call));
                Some(Self::Exec { script: ShellScript::parse(&line), line, cwd, touched: paths, network })
            }
            ToolEffect::Network => {
                let given = text("url")?;
                let url = reqwest::Url::parse(&given).ok()?;
                let host = url.host_str()?.to_owned();
                let origin = format!("{}://{host}:{}", url.scheme(), url.port_or_known_default()?);
                Some(Self::Network { url: url.to_string(), host, origin, given })
            }
            ToolEffect::Read | ToolEffect::FileWrite | ToolEffect::Unknown => None,
        }
    }

    /// True if nothing outside the agent changes by it. Commands may do anything: they do not count.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Internal => true,
            Self::StoreWrite
            | Self::FileWrite { .. }
            | Self::Exec { .. }
            | Self::Network { .. }
            | Self::Unknown { .. } => false,
        }
    }

    /// What could deceive the eye of whoever is asked, or was never asked.
    pub(super) fn find_deception(&self) -> Option<&'static str> {
        let odd = |text: &str| text.chars().any(sanitize::is_deceptive_char);
        let hidden = match self {
            Self::Exec { line, .. } => odd(line),
            Self::FileWrite { path, .. } => odd(&path.to_string_lossy()),
            Self::Network { given, .. } => odd(given),
            Self::Read { .. } | Self::Internal | Self::StoreWrite | Self::Unknown { .. } => false,
        };
        hidden.then_some("it holds control or hidden characters")
    }

    /// The texts that the patterns of rules are compared with.
    pub(super) fn rule_subjects(&self, call: &ToolCall, folders: &WorkspaceFolders) -> Vec<String> {
        match self {
            Self::Read { paths } => paths.iter().flat_map(|path| effect_rule_names(path, folders)).collect(),
            Self::Internal | Self::StoreWrite => vec![],
            Self::FileWrite { path, .. } => effect_rule_names(path, folders),
            Self::Exec { line, script, .. } => {
                script.commands.iter().map(SimpleCommand::joined_text).chain([line.clone()]).collect()
            }
            Self::Network { url, host, .. } => vec![url.clone(), host.clone()],
            Self::Unknown { .. } => vec![canonical_permission_json(&call.arguments)],
        }
    }

    /// What a grant for this call covers: exactly what is shown.
    pub(super) fn grant_scope(&self) -> Option<Scope> {
        match self {
            Self::Read { paths } => match paths.as_slice() {
                [path] => Some(Scope::Look { path: path.clone() }),
                _ => None,
            },
            Self::Internal | Self::StoreWrite => None,
            Self::FileWrite { objected: Some(scope), .. } => Some(scope.clone()),
            Self::FileWrite { path, objected: None } => Some(Scope::Change { path: path.clone() }),
            // Neither the command alone nor the network alone was shown.
            Self::Exec { network: Some(fingerprint), .. } => {
                Some(Scope::Call { tool: "shell".to_owned(), fingerprint: fingerprint.clone() })
            }
            Self::Exec { line, cwd, script, .. } => Some(match (script.flaw, script.commands.as_slice()) {
                (None, [command]) if !effect_has_glob(command) => effect_grant_scope(command, cwd),
                _ => Scope::Line { line: line.clone(), cwd: cwd.clone() },
            }),
            Self::Network { origin, .. } => Some(Scope::Reach { origin: origin.clone() }),
            Self::Unknown { tool, fingerprint } => {
                Some(Scope::Call { tool: tool.clone(), fingerprint: fingerprint.clone() })
            }
        }
    }

    /// Kinds of calls that this one is of, each of which can be allowed as such. None for what somebody must look at each
    /// time: files that make something run or hold secrets, and whatever there is an objection to.
    pub(super) fn wider_scopes(&self, context: &CallContext) -> Vec<Scope> {
        let folders = &context.folders;
        match self {
            Self::FileWrite { path, objected: None } => {
                let inner = folders.path_from_above(path);
                let special = is_protected_path(inner) || is_secret_path(inner) || !folders.contains(path);
                let folder = path.parent().filter(|folder| !special && folders.contains(folder));
                folder.map(|folder| Scope::ChangeIn { folder: folder.to_owned() }).into_iter().collect()
            }
            Self::Unknown { tool, .. } if tool.contains("__") => vec![Scope::Tool { tool: tool.clone() }],
            Self::Exec { network: None, script, cwd, touched, .. } => {
                effect_of_read_only_program(script, cwd, touched, context).into_iter().collect()
            }
            Self::Read { .. }
            | Self::Internal
            | Self::StoreWrite
            | Self::FileWrite { .. }
            | Self::Exec { .. }
            | Self::Network { .. }
            | Self::Unknown { .. } => vec![],
        }
    }

    /// The scopes of what it consists of: the commands inside a line, the file of a change.
    pub(super) fn member_scopes(&self) -> Vec<Scope> {
        match self {
            Self::Exec { cwd, script, .. } => {
                script.commands.iter().map(|command| effect_grant_scope(command, cwd)).collect()
            }
            Self::FileWrite { path, .. } => vec![Scope::Change { path: path.clone() }],
            Self::Read { .. } | Self::Internal | Self::StoreWrite | Self::Network { .. } | Self::Unknown { .. } => {
                vec![]
            }
        }
    }

    /// What "always" would store: first exactly this call, then the kinds of calls that it is of.
    pub(super) fn always_grants(&self, context: &CallContext) -> Vec<Grant> {
        let scopes = self.grant_scope().into_iter().chain(self.wider_scopes(context));
        scopes.map(|scope| Grant { workspace: context.folders.root.clone(), scope, stand: Stand::Allow }).collect()
    }

    /// True for a line of which every command only reads, sandbox or not.
    pub(super) fn only_looks(&self, context: &CallContext) -> bool {
        let Self::Exec { cwd, script, touched, .. } = self else { return false };
        let context = CallContext { sandboxed: true, ..context.clone() };
        decide_exec_effect(script, cwd, touched, &ExecRules { rules: &[], grants: &[], context: &context }).is_ok()
    }

    /// Why it runs unasked, or why it does not. The rules given all allow something of it.
    pub(super) fn allow_unasked(
        &self,
        policy: Policy,
        rules: &[&Rule],
        grants: &[&Grant],
        context: &CallContext,
    ) -> Result<&'static str, String> {
        let anything = policy == Policy::Auto;
        match self {
            Self::Internal => Ok("it only notes something down, or loads what is prepared"),
            Self::StoreWrite => Ok("it only changes what the server keeps, and older versions stay"),
            Self::Read { paths } => {
                decide_read_effect(paths, anything || rules.iter().any(|rule| rule.is_exact()), &context.folders)
            }
            Self::FileWrite { path, .. } => decide_file_write_effect(path, policy, rules, context),
            _ if anything => Ok("the policy is auto"),
            Self::Exec { .. } if rules.iter().any(|rule| rule.covers_whole_tool()) => Ok("a rule allows it"),
            Self::Exec { network: Some(_), .. } => Err("it wants the network".into()),
            Self::Exec { cwd, script, touched, .. } => {
                decide_exec_effect(script, cwd, touched, &ExecRules { rules, grants, context })
            }
            Self::Network { .. } | Self::Unknown { .. } if !rules.is_empty() => Ok("a rule allows it"),
            Self::Network { .. } => Err("it reaches out of this machine".into()),
            Self::Unknown { .. } => Err("it is not one of the built-in tools".into()),
        }
    }
}

/// The program of a line that is one command which only reads, where only the missing sandbox speaks against it.
fn effect_of_read_only_program(
    script: &ShellScript,
    cwd: &Path,
    touched: &[PathBuf],
    context: &CallContext,
) -> Option<Scope> {
    let CallContext { folders, sandboxed, objection, .. } = context;
    let [command] = script.commands.as_slice() else { return None };
    let outside = |path: &PathBuf| !folders.contains(path) || is_secret_path(folders.path_from_above(path));
    if *sandboxed || objection.is_some() || script.flaw.is_some() || command.piped || touched.iter().any(outside) {
        return None;
    }
    programs::check_only_reads(command, &[cwd.to_owned()], folders, &mut LineReads::default()).ok()?;
    let words = command.argv();
    let program = match words.as_slice() {
        [git, command, ..] if git == "git" && !command.starts_with('-') => format!("git {command}"),
        [program, ..] => program.clone(),
        [] => return None,
    };
    Some(Scope::Program { program })
}

/// What may let the commands of a line run unasked.
struct ExecRules<'a> {
    rules: &'a [&'a Rule],
    grants: &'a [&'a Grant],
    context: &'a CallContext,
}

fn decide_read_effect(paths: &[PathBuf], trusted: bool, folders: &WorkspaceFolders) -> Result<&'static str, String> {
    match paths.iter().find(|path| !folders.contains(path)) {
        Some(_) => Err("it looks outside the workspace".into()),
        None if trusted || !paths.iter().any(|path| is_secret_path(folders.path_from_above(path))) => {
            Ok("it only looks")
        }
        None => Err("it looks at a file that may hold secrets".into()),
    }
}

fn decide_file_write_effect(
    path: &Path,
    policy: Policy,
    rules: &[&Rule],
    context: &CallContext,
) -> Result<&'static str, String> {
    let CallContext { folders, objection, .. } = context;
    let special = is_protected_path(folders.path_from_above(path)) || objection.is_some();
    match policy {
        _ if !folders.contains(path) => Err("it changes a file outside the workspace".into()),
        Policy::Auto => Ok("the policy is auto"),
        _ if rules.iter().any(|rule| rule.is_exact() || (!special && !rules.is_empty())) => Ok("a rule allows it"),
        _ if special => {
            let by_name = || "this file can make something run, or holds secrets".to_owned();
            Err(objection.clone().unwrap_or_else(by_name))
        }
        Policy::AutoEdit => Ok("the policy is auto_edit"),
        Policy::Ask | Policy::ReadOnly => Err("it changes a file".into()),
    }
}

/// Each command must be fine by itself, in every directory it may find itself in.
fn decide_exec_effect(
    script: &ShellScript,
    cwd: &Path,
    touched: &[PathBuf],
    exec: &ExecRules<'_>,
) -> Result<&'static str, String> {
    let CallContext { folders, sandboxed, objection, .. } = exec.context;
    if let Some(flaw) = script.flaw {
        return Err(flaw.into());
    }
    if touched.iter().any(|path| !folders.contains(path) || is_secret_path(folders.path_from_above(path))) {
        return Err("it touches files outside the workspace, or files that may hold secrets".into());
    }
    let (mut reads, mut allowed_only) = (LineReads::default(), false);
    let mut bases = vec![cwd.to_owned()];
    for command in &script.commands {
        let mut one = LineReads::default();
        let only_reads =
            programs::check_only_reads(command, &bases, folders, &mut one).map(|()| reads.merge_reads(one));
        if is_effect_allowed_beforehand(command, &bases, exec) {
            allowed_only |= only_reads.is_err();
        } else {
            only_reads?;
            if !sandboxed {
                return Err("there is no sandbox around this command".into());
            }
        }
        bases = script::directories_after_script(command, bases).ok_or("it changes the directory too often")?;
    }
    match objection {
        // Beside a command that may write there is no sandbox that keeps everything read-only and secrets out of sight.
        _ if allowed_only && reads.reads_unnamed_files() => {
            Err("it searches files beside a command that may change them".into())
        }
        Some(objection) => Err(objection.clone()),
        None => Ok("every command in it only looks or is allowed"),
    }
}

/// Allowed by rule or grant. What is piped into a command is part of what it does: such a one was not shown.
fn is_effect_allowed_beforehand(command: &SimpleCommand, bases: &[PathBuf], exec: &ExecRules<'_>) -> bool {
    let granted = |base: &PathBuf| {
        let scope = effect_grant_scope(command, base);
        exec.grants.iter().any(|grant| grant.stand == Stand::Allow && grant.scope == scope)
    };
    let by_rule = exec.rules.iter().any(|rule| rule.matches_text(&command.joined_text()));
    !command.piped && !effect_has_glob(command) && (by_rule || bases.iter().all(granted))
}

fn effect_grant_scope(command: &SimpleCommand, cwd: &Path) -> Scope {
    Scope::Command { argv: command.argv(), cwd: cwd.to_owned() }
}

fn effect_has_glob(command: &SimpleCommand) -> bool {
    command.words.iter().any(|word| word.glob)
}

fn effect_rule_names(path: &Path, folders: &WorkspaceFolders) -> Vec<String> {
    let relative = path.strip_prefix(&folders.root).ok().map(|path| path.to_string_lossy().into_owned());
    relative.into_iter().chain([path.to_string_lossy().into_owned()]).collect()
}
