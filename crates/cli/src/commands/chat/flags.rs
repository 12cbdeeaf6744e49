//! What can be said to `gander chat`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::run::flags::SessionOptions;
use crate::commands::shell_completion;

/// Options of `gander chat`.
#[derive(Debug, Default, Args)]
pub(crate) struct ChatOptions {
    /// Session ID, or its beginning [default: a new session]
    #[arg(long, value_name = "ID", conflicts_with = "continue_last", add = shell_completion::complete_sessions())]
    pub(crate) session: Option<String>,
    /// Continue the last session of this folder
    #[arg(long = "continue", short = 'c')]
    pub(crate) continue_last: bool,
    /// Connect to the server at this address instead of the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    /// File with the token for --attach [default: that of `gander login`, else this data directory's for a server on this machine]
    #[arg(long, value_name = "FILE", requires = "attach")]
    pub(crate) token_file: Option<PathBuf>,
    /// Fingerprint of the certificate for --attach, as `gander serve --tls-self-signed` prints it
    #[arg(long, value_name = "SHA256", requires = "attach")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SessionOptions,
    /// Print whole lines only and never redraw: for screen readers and simple terminals
    #[arg(long)]
    pub(crate) plain: bool,
}
