//! What can be said to `gander chat`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::run::options::SessionOptions;

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
    #[command(flatten)]
    pub(crate) settings: SessionOptions,
    /// Whole lines only, nothing is drawn twice: for screen readers and simple terminals
    #[arg(long)]
    pub(crate) plain: bool,
}
