//! What can be said to `gander chat`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::run::options::PolicyName;

/// Options of `gander chat`.
#[derive(Debug, Default, Args)]
pub(crate) struct ChatOptions {
    /// Session ID, or its beginning [default: a new session]
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) session: Option<String>,
    /// Go on in the last session of this folder
    #[arg(long = "continue", short = 'c')]
    pub(crate) continue_last: bool,
    /// Talk to the server at this address instead of the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    /// The token for --attach, in a file [default: this data directory's own, for a server on this machine]
    #[arg(long, value_name = "FILE", requires = "attach")]
    pub(crate) token_file: Option<PathBuf>,
    /// The fingerprint of the certificate at --attach, as `gander serve --tls-self-signed` prints it
    #[arg(long, value_name = "SHA256", requires = "attach")]
    pub(crate) fingerprint: Option<String>,
    /// The model, as provider/model: see `gander models`
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The mode, such as backend or planner: see `gander modes`
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// What may run without asking
    #[arg(long, value_enum)]
    pub(crate) policy: Option<PolicyName>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR", alias = "cwd")]
    pub(crate) folder: Option<PathBuf>,
    /// Whole lines only, nothing is drawn twice: for screen readers and simple terminals
    #[arg(long)]
    pub(crate) plain: bool,
}
