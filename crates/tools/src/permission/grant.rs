//! Grants: what a person allowed or refused for good, and exactly that.

use gander_domain::sanitize;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::decide_effect::CallEffect;
use super::script::shell_quoted;
use super::{CallContext, WorkspaceFolders};

/// What a person allowed or refused for good in one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The root of the workspace it holds in.
    pub workspace: PathBuf,
    /// What was shown.
    pub scope: Scope,
    /// What was said.
    pub stand: Stand,
}

/// What was shown, and therefore what is covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Scope {
    /// One simple command with exactly these words, alone or as the start of a pipeline.
    Command {
        /// The words.
        argv: Vec<String>,
        /// Where it ran, absolute.
        cwd: PathBuf,
    },
    /// A whole shell line, letter for letter.
    Line {
        /// The line.
        line: String,
        /// Where it ran, absolute.
        cwd: PathBuf,
    },
    /// Changing one file.
    Change {
        /// Which, absolute.
        path: PathBuf,
    },
    /// Changing files in one folder and below it, but for those that make something run or hold secrets.
    ChangeIn {
        /// Which, absolute.
        folder: PathBuf,
    },
    /// One program in all its forms that only read, as the table of programs says, where no sandbox is around it.
    Program {
        /// Its name, such as `grep` or `git log`.
        program: String,
    },
    /// Every call of one tool of an MCP server.
    Tool {
        /// The tool, with the name of its server.
        tool: String,
    },
    /// Reading one file or folder.
    Look {
        /// Which, absolute.
        path: PathBuf,
    },
    /// Fetching from one host and port.
    Reach {
        /// Such as `https://example.org:443`.
        origin: String,
    },
    /// One call of any other tool with exactly these arguments.
    Call {
        /// The tool.
        tool: String,
        /// The fingerprint of the call.
        fingerprint: String,
    },
}

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

impl Grant {
    /// True if a kind of calls is this one, or a part of it: a folder includes the folders in it.
    fn includes_scope(&self, wider: &Scope) -> bool {
        match (&self.scope, wider) {
            (Scope::ChangeIn { folder }, Scope::ChangeIn { folder: inner }) => inner.starts_with(folder),
            (scope, wider) => scope == wider,
        }
    }

    /// The same scope, refused.
    pub fn as_refusal(self) -> Self {
        Self { stand: Stand::Deny, ..self }
    }

    /// True if it holds in this workspace.
    pub(super) fn is_for_workspace(&self, folders: &WorkspaceFolders) -> bool {
        self.workspace == folders.root
    }

    /// True if the call is what was shown: exactly, or one of the kind that was named.
    pub(super) fn covers_effect(&self, effect: &CallEffect, context: &CallContext) -> bool {
        match (self.stand, effect.grant_scope()) {
            (_, Some(scope)) if scope == self.scope => true,
            (Stand::Allow, _) if effect.wider_scopes(context).iter().any(|wider| self.includes_scope(wider)) => true,
            // A refused command stays refused in company.
            (Stand::Deny, _) => effect.member_scopes().contains(&self.scope),
            (Stand::Allow, _) => false,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Command { argv, .. } => {
                let words: Vec<String> = argv.iter().map(|word| shell_quoted(word)).collect();
                write!(f, "`{}`", sanitize::sanitized_line(&words.join(" ")))
            }
            Scope::Line { line, .. } => write!(f, "the line `{}`", sanitize::sanitized_line(line)),
            Scope::Change { path } => write!(f, "edits of {}", sanitize::sanitized_line(&path.to_string_lossy())),
            Scope::ChangeIn { folder } => {
                let folder = sanitize::sanitized_line(&folder.to_string_lossy());
                write!(
                    f,
                    "every edit of files in {folder} and its folders (not of files that run something or hold secrets)"
                )
            }
            Scope::Program { program } => {
                let program = sanitize::sanitized_line(program);
                write!(f, "`{program}` with any arguments that only read in this workspace")
            }
            Scope::Tool { tool } => write!(f, "every call of the tool {}", sanitize::sanitized_line(tool)),
            Scope::Look { path } => write!(f, "reading {}", sanitize::sanitized_line(&path.to_string_lossy())),
            Scope::Reach { origin } => write!(f, "fetching from {}", sanitize::sanitized_line(origin)),
            Scope::Call { tool, .. } => write!(f, "{} with exactly these arguments", sanitize::sanitized_line(tool)),
        }
    }
}
