//! What can be said to `gander run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::busy::IfBusy;
use crate::commands::shell_completion;

/// Options of `gander run`.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The prompt; piped stdin is appended to it, `-` reads stdin alone
    pub(crate) prompt: Option<String>,
    /// Follow this recipe: a file, a name from `gander recipes list`, or a link
    #[arg(long, value_name = "RECIPE", add = shell_completion::complete_all_recipes())]
    pub(crate) recipe: Option<String>,
    /// Set a parameter of the recipe
    #[arg(long = "param", value_name = "KEY=VALUE", requires = "recipe")]
    pub(crate) params: Vec<String>,
    /// Session ID, or its beginning; without a prompt, follow the turn that is running there
    #[arg(long, value_name = "ID", conflicts_with = "continue_last", add = shell_completion::complete_sessions())]
    pub(crate) session: Option<String>,
    /// Continue the last session of this folder
    #[arg(long = "continue", short = 'c')]
    pub(crate) continue_last: bool,
    /// What to do if a turn is running in the session [default: ask, or fail without a terminal]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) if_busy: Option<IfBusy>,
    /// Attach a text file; can be repeated
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Attach an image; can be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Wait for stdin, however long it takes, and append it to the prompt
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one event per line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) settings: SessionOptions,
    /// Run everything in this process, without a background server
    #[arg(long)]
    pub(crate) standalone: bool,
}

/// How a session works, for every command that opens one.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionOptions {
    /// The model, as provider/model: see `gander models`
    #[arg(long, short, value_name = "MODEL", add = shell_completion::complete_models())]
    pub(crate) model: Option<String>,
    /// The agent, such as a goose elsewhere: see `gander agents`
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The mode, such as backend or planner: see `gander modes`
    #[arg(long, value_name = "MODE", add = shell_completion::complete_modes())]
    pub(crate) mode: Option<String>,
    /// What runs without approval
    #[arg(long, value_enum)]
    pub(crate) policy: Option<PolicyName>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR", alias = "cwd", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

/// What may run unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum PolicyName {
    /// Reads run, everything else is refused
    ReadOnly,
    /// Reads run, everything else prompts
    Ask,
    /// Edits inside the workspace run too
    AutoEdit,
    /// Everything that no rule denies
    Auto,
}

impl PolicyName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Ask => "ask",
            Self::AutoEdit => "auto_edit",
            Self::Auto => "auto",
        }
    }
}
