//! `gander store`: moves sessions between SQLite and PostgreSQL.

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use gander::daemon::ServerError;
use gander_services::paths::DirectoryLock;
use gander_store::{CopyReport, PostgresStore, StoreAddress, copy_store};

use crate::commands::{Context, Exit};

#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    #[command(subcommand)]
    pub(super) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Copy all sessions into an empty store and verify them; no server may use either
    #[command(after_help = "\
Examples:
  gander store copy ~/.local/share/gander postgres://gander@db.example/gander
  gander store copy postgres://gander@db.example/gander ~/gander-data

FROM and TO are data directories (SQLite) or URLs of PostgreSQL databases. Passwords come from
PGPASSWORD or ~/.pgpass. The target must be empty, and stays so if anything fails. Tokens,
secrets and private folders are files of the data directory and are not copied.")]
    Copy {
        /// A data directory or a postgres:// URL
        from: String,
        /// A data directory or a postgres:// URL, empty
        to: String,
    },
    /// Tell clients that a PostgreSQL database is a copy whose end may be missing
    ///
    /// Dumps that are restored and standbys that are promoted are noticed without this.
    NewIncarnation,
}

pub(super) async fn run(context: Context, command: StoreCommand) -> anyhow::Result<Exit> {
    match command {
        StoreCommand::Copy { from, to } => copy_store_command(&context, &from, &to).await,
        StoreCommand::NewIncarnation => begin_store_incarnation(&context).await,
    }
}

async fn copy_store_command(context: &Context, from: &str, to: &str) -> anyhow::Result<Exit> {
    let (from, to): (StoreAddress, StoreAddress) = (from.parse()?, to.parse()?);
    // The server of this data directory may serve a database: its lock says so, and the file's own lock says the rest.
    let paths = &context.config.paths;
    paths.create_folders()?;
    let lock = DirectoryLock::try_take(&paths.server_lock())?;
    ensure!(lock.is_some(), "{}", ServerError::Taken(paths.data_directory().to_owned()));
    let output = context.output;
    let mut shown = ("", 0);
    let progress = |table: &str, count: u64| {
        // A line per table, and one for every ten thousand rows.
        if table != shown.0 || count / 10_000 != shown.1 {
            output.note(&format!("copying {table} … {count}"));
        }
        shown = (TABLES.into_iter().find(|known| *known == table).unwrap_or_default(), count / 10_000);
    };
    let CopyReport { rows, digest } = copy_store(&from, &to, progress).await?;
    let rows: Vec<String> = rows.iter().map(|(table, count)| format!("{count} {table}")).collect();
    output.line(&format!("Copied {} from {from} to {to}.", rows.join(", ")))?;
    output.line(&format!("Read back and verified: sha256 {digest}"))?;
    Ok(Exit::Done)
}

const TABLES: [&str; 5] = ["sessions", "entries", "names", "facts", "indexes"];

async fn begin_store_incarnation(context: &Context) -> anyhow::Result<Exit> {
    let url = context.config.sections.store.url.as_ref();
    let url = url.context("no PostgreSQL database is set: GANDER_STORE=postgres://… gander store new-incarnation")?;
    let incarnation = PostgresStore::begin_incarnation(&url.parse()?).await?;
    context.output.line(&format!("{url} is incarnation {incarnation} now. Restart its servers."))?;
    Ok(Exit::Done)
}
