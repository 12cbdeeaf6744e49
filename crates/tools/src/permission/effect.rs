//! What a call is about, in the words of the permission rules.

use gander_domain::sanitize;
use std::path::{Path, PathBuf};

use gander_domain::{Policy, ToolCall};
use serde_json::Value;

use super::reads::Reads;
use super::script::{self, Script, Simple};
use super::{Grant, Place, Rule, Scope, Stand, canonical, fingerprint, is_protected, is_secret, programs};

/// What a call is about. Only the built-in tools are known by name: any other is a stranger.
pub(super) enum ToolEffect {
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
    Exec { line: String, cwd: PathBuf, script: Script, touched: Vec<PathBuf>, network: Option<String> },
    /// Getting something from elsewhere.
    Network { url: String, host: String, origin: String, given: String },
    /// Anything else.
    Unknown { tool: String, fingerprint: String },
}

/// True for tools of our own that people are asked about: their titles are made here, of their arguments.
pub(super) fn is_own(tool: &str) -> bool {
    ["read", "list", "grep", "write", "edit", "shell", "fetch"].contains(&tool)
}

impl ToolEffect {
    /// Reads a call.
    pub(super) fn of_call(call: &ToolCall, place: &Place) -> Self {
        Self::of_known_tool(call, place)
            .unwrap_or_else(|| Self::Unknown { tool: call.name.clone(), fingerprint: fingerprint(call) })
    }

    fn of_known_tool(call: &ToolCall, place: &Place) -> Option<Self> {
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut paths: Vec<PathBuf> = call.locations.iter().map(|location| PathBuf::from(&location.path)).collect();
        match call.name.as_str() {
            "read" | "list" | "grep" if !paths.is_empty() => Some(Self::Read { paths }),
            "plan" | "propose_plan" | "skill" | "final_output" | "app_list" | "app_read" | "artifact_list"
            | "artifact_read" => Some(Self::Internal),
            "app_create" | "app_update" | "artifact_save" => Some(Self::StoreWrite),
            // What it starts asks for itself.
            "delegate" => Some(Self::Internal),
            // Its own calls are asked about. What has two underscores is of an MCP server.
            name if name.starts_with("recipe_") && !name.contains("__") => Some(Self::Internal),
            "write" | "edit" if paths.len() == 1 => {
                let scope = || Scope::Call { tool: call.name.clone(), fingerprint: fingerprint(call) };
                let objected = place.objection.as_ref().map(|_| scope());
                paths.pop().map(|path| Self::FileWrite { path, objected })
            }
            "shell" => {
                let line = text("command")?;
                let cwd = place.root.join(text("cwd").unwrap_or_default());
                let network = call.arguments.get("network") == Some(&Value::Bool(true));
                let network = network.then(|| fingerprint(call));
                Some(Self::Exec { script: Script::parse(&line), line, cwd, touched: paths, network })
            }
            "fetch" => {
                let given = text("url")?;
                let url = reqwest::Url::parse(&given).ok()?;
                let host = url.host_str()?.to_owned();
                let origin = format!("{}://{host}:{}", url.scheme(), url.port_or_known_default()?);
                Some(Self::Network { url: url.to_string(), host, origin, given })
            }
            _ => None,
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
    pub(super) fn deception(&self) -> Option<&'static str> {
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
    pub(super) fn subjects(&self, call: &ToolCall, place: &Place) -> Vec<String> {
        match self {
            Self::Read { paths } => paths.iter().flat_map(|path| rule_names(path, place)).collect(),
            Self::Internal | Self::StoreWrite => vec![],
            Self::FileWrite { path, .. } => rule_names(path, place),
            Self::Exec { line, script, .. } => script.commands.iter().map(Simple::text).chain([line.clone()]).collect(),
            Self::Network { url, host, .. } => vec![url.clone(), host.clone()],
            Self::Unknown { .. } => vec![canonical(&call.arguments)],
        }
    }

    /// What a grant for this call covers: exactly what is shown.
    pub(super) fn scope(&self) -> Option<Scope> {
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
                (None, [command]) if !has_glob(command) => command_scope(command, cwd),
                _ => Scope::Line { line: line.clone(), cwd: cwd.clone() },
            }),
            Self::Network { origin, .. } => Some(Scope::Reach { origin: origin.clone() }),
            Self::Unknown { tool, fingerprint } => {
                Some(Scope::Call { tool: tool.clone(), fingerprint: fingerprint.clone() })
            }
        }
    }

    /// The scopes of what it consists of: the commands inside a line, the file of a change.
    pub(super) fn members(&self) -> Vec<Scope> {
        match self {
            Self::Exec { cwd, script, .. } => {
                script.commands.iter().map(|command| command_scope(command, cwd)).collect()
            }
            Self::FileWrite { path, .. } => vec![Scope::Change { path: path.clone() }],
            Self::Read { .. } | Self::Internal | Self::StoreWrite | Self::Network { .. } | Self::Unknown { .. } => {
                vec![]
            }
        }
    }

    /// What "always" would store.
    pub(super) fn grant(&self, place: &Place) -> Option<Grant> {
        self.scope().map(|scope| Grant { workspace: place.root.clone(), scope, stand: Stand::Allow })
    }

    /// Why it runs unasked, or why it does not. The rules given all allow something of it.
    pub(super) fn allow_unasked(
        &self,
        policy: Policy,
        rules: &[&Rule],
        grants: &[&Grant],
        place: &Place,
    ) -> Result<&'static str, String> {
        let anything = policy == Policy::Auto;
        match self {
            Self::Internal => Ok("it only notes something down, or loads what is prepared"),
            Self::StoreWrite => Ok("it only changes what the server keeps, and older versions stay"),
            Self::Read { paths } => decide_read(paths, anything || rules.iter().any(|rule| rule.is_exact()), place),
            Self::FileWrite { path, .. } => decide_file_write(path, policy, rules, place),
            _ if anything => Ok("the policy is auto"),
            Self::Exec { .. } if rules.iter().any(|rule| rule.is_total()) => Ok("a rule allows it"),
            Self::Exec { network: Some(_), .. } => Err("it wants the network".into()),
            Self::Exec { cwd, script, touched, .. } => {
                decide_exec(script, cwd, touched, &ExecContext { rules, grants, place })
            }
            Self::Network { .. } | Self::Unknown { .. } if !rules.is_empty() => Ok("a rule allows it"),
            Self::Network { .. } => Err("it reaches out of this machine".into()),
            Self::Unknown { .. } => Err("it is not one of the built-in tools".into()),
        }
    }
}

impl Place {
    /// True if the path lies in one of the folders, by its letters.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || self.extra.iter().any(|extra| path.starts_with(extra))
    }

    /// The path as seen from above the folder that holds it: that folder's own name counts, for somebody may work in
    /// `.github` or `.vscode`. Names above it say nothing about a file in it.
    pub(crate) fn inner<'a>(&self, path: &'a Path) -> &'a Path {
        let roots = std::iter::once(&self.root).chain(&self.extra).filter(|root| path.starts_with(root));
        let above = roots.map(|root| root.parent().unwrap_or(root));
        above.filter_map(|above| path.strip_prefix(above).ok()).next().unwrap_or(path)
    }
}

struct ExecContext<'a> {
    rules: &'a [&'a Rule],
    grants: &'a [&'a Grant],
    place: &'a Place,
}

fn decide_read(paths: &[PathBuf], trusted: bool, place: &Place) -> Result<&'static str, String> {
    match paths.iter().find(|path| !place.holds(path)) {
        Some(_) => Err("it looks outside the workspace".into()),
        None if trusted || !paths.iter().any(|path| is_secret(place.inner(path))) => Ok("it only looks"),
        None => Err("it looks at a file that may hold secrets".into()),
    }
}

fn decide_file_write(path: &Path, policy: Policy, rules: &[&Rule], place: &Place) -> Result<&'static str, String> {
    let special = is_protected(place.inner(path)) || place.objection.is_some();
    match policy {
        _ if !place.holds(path) => Err("it changes a file outside the workspace".into()),
        Policy::Auto => Ok("the policy is auto"),
        _ if rules.iter().any(|rule| rule.is_exact() || (!special && !rules.is_empty())) => Ok("a rule allows it"),
        _ if special => {
            let by_name = || "this file can make something run, or holds secrets".to_owned();
            Err(place.objection.clone().unwrap_or_else(by_name))
        }
        Policy::AutoEdit => Ok("the policy is auto_edit"),
        Policy::Ask | Policy::ReadOnly => Err("it changes a file".into()),
    }
}

/// Each command must be fine by itself, in every directory it may find itself in.
fn decide_exec(
    script: &Script,
    cwd: &Path,
    touched: &[PathBuf],
    standing: &ExecContext<'_>,
) -> Result<&'static str, String> {
    let place = standing.place;
    if let Some(flaw) = script.flaw {
        return Err(flaw.into());
    }
    if touched.iter().any(|path| !place.holds(path) || is_secret(place.inner(path))) {
        return Err("it touches files outside the workspace, or files that may hold secrets".into());
    }
    let (mut reads, mut vouched_only) = (Reads::default(), false);
    let mut bases = vec![cwd.to_owned()];
    for command in &script.commands {
        let mut one = Reads::default();
        let looks = programs::looks(command, &bases, place, &mut one).map(|()| reads.take(one));
        if is_vouched(command, &bases, standing) {
            vouched_only |= looks.is_err();
        } else {
            looks?;
            if !place.fenced {
                return Err("there is no sandbox around this command".into());
            }
        }
        bases = script::bases_after(command, bases).ok_or("it changes the directory too often")?;
    }
    match &place.objection {
        // Beside a command that may write there is no fence that keeps everything read-only and secrets out of sight.
        _ if vouched_only && reads.is_wide() => Err("it searches files beside a command that may change them".into()),
        Some(objection) => Err(objection.clone()),
        None => Ok("every command in it only looks or is allowed"),
    }
}

/// Allowed by rule or grant. What is piped into a command is part of what it does: such a one was not shown.
fn is_vouched(command: &Simple, bases: &[PathBuf], standing: &ExecContext<'_>) -> bool {
    let granted = |base: &PathBuf| {
        let scope = command_scope(command, base);
        standing.grants.iter().any(|grant| grant.stand == Stand::Allow && grant.scope == scope)
    };
    let by_rule = standing.rules.iter().any(|rule| rule.fits(&command.text()));
    !command.piped && !has_glob(command) && (by_rule || bases.iter().all(granted))
}

fn command_scope(command: &Simple, cwd: &Path) -> Scope {
    Scope::Command { argv: command.argv(), cwd: cwd.to_owned() }
}

fn has_glob(command: &Simple) -> bool {
    command.words.iter().any(|word| word.glob)
}

fn rule_names(path: &Path, place: &Place) -> Vec<String> {
    let relative = path.strip_prefix(&place.root).ok().map(|path| path.to_string_lossy().into_owned());
    relative.into_iter().chain([path.to_string_lossy().into_owned()]).collect()
}
