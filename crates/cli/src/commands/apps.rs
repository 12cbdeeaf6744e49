//! `gander apps`: small web pages that agents made.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use gander_services::paths::write_private_file;
use serde_json::{Value, json};

use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;
use crate::terminal::list_table::print_list_table;

#[derive(Debug, Subcommand)]
pub(super) enum AppsCommand {
    /// List apps
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print an app's HTML page
    Export {
        /// Name of the app
        #[arg(add = shell_completion::complete_apps())]
        name: String,
        /// Write to FILE (mode 600)
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Add an HTML page as an app, named after its title
    Import {
        /// HTML file
        file: PathBuf,
    },
    /// Delete an app with all its versions
    Delete {
        /// Name of the app
        #[arg(add = shell_completion::complete_apps())]
        name: String,
    },
}

pub(super) async fn run(context: Context, command: AppsCommand) -> anyhow::Result<Exit> {
    let mut connection = client::connect_client(&context.config, &std::env::current_dir()?).await?;
    let text = |value: &Value| clean_output_text(value.as_str().unwrap_or_default());
    match command {
        AppsCommand::List { json } => {
            let answer = connection.call_method("_goose/unstable/apps/list", &json!({})).await?;
            let apps = answer["apps"].as_array().cloned().unwrap_or_default();
            if json {
                apps.iter().try_for_each(|app| context.output.line(&app.to_string()))?;
            } else if apps.is_empty() {
                context.output.note("No apps yet. Make one: gander run --mode app_maker \"…\"");
            } else {
                let row = |app: &Value| vec![text(&app["name"]), app["version"].to_string(), text(&app["description"])];
                let rows: Vec<Vec<String>> = apps.iter().map(row).collect();
                print_list_table(context.output, &["NAME", "VERSION", "DESCRIPTION"], &rows)?;
            }
        }
        AppsCommand::Export { name, output } => {
            let answer = connection.call_method("_goose/unstable/apps/export", &json!({ "name": name })).await?;
            let html = answer["html"].as_str().unwrap_or_default();
            match output {
                Some(path) => write_private_file(&path, html.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?,
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
            context.output.note(&format!("Deleted {}.", clean_output_text(&name)));
        }
    }
    Ok(Exit::Done)
}
