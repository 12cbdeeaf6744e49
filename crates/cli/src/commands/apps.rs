//! `gander apps`: small web pages that agents made.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use gander_services::paths::write_private;
use serde_json::{Value, json};

use super::client;
use crate::commands::{Context, Exit};
use crate::output::clean;

#[derive(Debug, Subcommand)]
pub(super) enum AppsCommand {
    /// Apps, by name
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print an app's page
    Export {
        /// Which
        name: String,
        /// Into this file
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Keep a page as an app, under its title
    Import {
        /// The page
        file: PathBuf,
    },
    /// Delete an app with all its versions
    Delete {
        /// Which
        name: String,
    },
}

pub(super) async fn run(context: Context, command: AppsCommand) -> anyhow::Result<Exit> {
    let mut connection = client::connect(&context.config, &std::env::current_dir()?).await?;
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    match command {
        AppsCommand::List { json } => {
            let answer = connection.call_method("_goose/unstable/apps/list", &json!({})).await?;
            for app in answer["apps"].as_array().into_iter().flatten() {
                let row =
                    || format!("{}\tversion {}\t{}", text(&app["name"]), app["version"], text(&app["description"]));
                context.output.line(&if json { app.to_string() } else { row() })?;
            }
        }
        AppsCommand::Export { name, output } => {
            let answer = connection.call_method("_goose/unstable/apps/export", &json!({ "name": name })).await?;
            let html = answer["html"].as_str().unwrap_or_default();
            match output {
                Some(path) => {
                    write_private(&path, html.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?
                }
                None => context.output.piece(html)?,
            }
        }
        AppsCommand::Import { file } => {
            let html = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let answer = connection.call_method("_goose/unstable/apps/import", &json!({ "html": html })).await?;
            context.output.line(&text(&answer["name"]))?;
        }
        AppsCommand::Delete { name } => {
            connection.call_method("_goose/unstable/apps/delete", &json!({ "name": name })).await?;
        }
    }
    Ok(Exit::Done)
}
