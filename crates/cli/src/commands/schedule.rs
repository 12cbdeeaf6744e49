//! `gander schedule`: recipes that run by the clock.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{client, recipes};
use crate::commands::{Context, Exit};
use crate::output::clean;

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Schedules, and when each is due
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run a recipe by the clock from now on
    Add {
        /// A name for it
        id: String,
        /// When: five or six fields, as cron reads them
        #[arg(long, value_name = "PATTERN")]
        cron: String,
        /// What: a file, a name from `gander recipes list`, or a link
        #[arg(long, value_name = "RECIPE")]
        recipe: String,
        /// Fills in a parameter of the recipe
        #[arg(long = "param", value_name = "KEY=VALUE")]
        params: Vec<String>,
        /// The time zone, such as Europe/Berlin [default: schedules.zone, else the machine's]
        #[arg(long, value_name = "ZONE")]
        zone: Option<String>,
        /// The folder to work in [default: a private one each time]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// What is known of one
    Show {
        /// Which
        id: String,
    },
    /// Let it rest
    Pause {
        /// Which
        id: String,
    },
    /// Let it go on
    Unpause {
        /// Which
        id: String,
    },
    /// Run it now; prints its session
    Run {
        /// Which
        id: String,
    },
    /// Stop what it runs
    Kill {
        /// Which
        id: String,
    },
    /// Its sessions, the latest first
    Sessions {
        /// Which
        id: String,
    },
    /// Forget it; its sessions stay
    Remove {
        /// Which
        id: String,
    },
}

pub(super) async fn run(context: Context, command: ScheduleCommand) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let (method, params) = match &command {
        ScheduleCommand::List { .. } => ("list", json!({})),
        ScheduleCommand::Add { id, cron, recipe, params, zone, cwd } => {
            let found = recipes::find(&context.config, &here, recipe).await?;
            let folder = cwd
                .as_ref()
                .map(|cwd| cwd.canonicalize().with_context(|| format!("no such folder: {}", cwd.display())));
            let params = json!({
                "id": id, "cron": cron, "zone": zone, "recipe": found.value, "values": recipes::values(params)?,
                "workingDir": folder.transpose()?, "folder": found.folder, "source": found.source,
            });
            ("create", params)
        }
        ScheduleCommand::Show { id } => ("read", json!({ "id": id })),
        ScheduleCommand::Pause { id } => ("pause", json!({ "id": id })),
        ScheduleCommand::Unpause { id } => ("unpause", json!({ "id": id })),
        ScheduleCommand::Run { id } => ("run-now", json!({ "id": id })),
        ScheduleCommand::Kill { id } => ("kill", json!({ "id": id })),
        ScheduleCommand::Sessions { id } => ("sessions", json!({ "id": id })),
        ScheduleCommand::Remove { id } => ("delete", json!({ "id": id })),
    };
    let mut connection = client::connect(&context.config, &here).await?;
    let answer = connection.call_method(&format!("_goose/unstable/schedules/{method}"), &params).await?;
    for line in result_lines(&command, &answer) {
        context.output.line(&line)?;
    }
    Ok(Exit::Done)
}

/// What is printed.
fn result_lines(command: &ScheduleCommand, answer: &Value) -> Vec<String> {
    let items = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    match command {
        ScheduleCommand::List { json: true } => items("jobs").iter().map(Value::to_string).collect(),
        ScheduleCommand::List { json: false } => items("jobs").iter().map(row).collect(),
        ScheduleCommand::Add { .. } => vec![row(answer)],
        ScheduleCommand::Show { .. } => vec![serde_json::to_string_pretty(answer).unwrap_or_default()],
        ScheduleCommand::Run { .. } => vec![text(&answer["sessionId"])],
        ScheduleCommand::Kill { .. } if answer["killed"] == true => vec!["stopped".to_owned()],
        ScheduleCommand::Kill { .. } => vec!["it does not run".to_owned()],
        ScheduleCommand::Sessions { .. } => items("sessions")
            .iter()
            .map(|session| {
                format!("{}\t{}\t{}", text(&session["id"]), text(&session["createdAt"]), text(&session["name"]))
            })
            .collect(),
        ScheduleCommand::Pause { .. } | ScheduleCommand::Unpause { .. } | ScheduleCommand::Remove { .. } => Vec::new(),
    }
}

fn row(job: &Value) -> String {
    let state = match (job["currently_running"] == true, job["paused"] == true, job["trouble"].as_str()) {
        (true, ..) => format!("runs in {}", text(&job["current_session_id"])),
        (false, true, _) => "rests".to_owned(),
        (false, false, Some(trouble)) => format!("went wrong: {}", clean(trouble)),
        (false, false, None) => format!("next {}", text(&job["next_run"])),
    };
    format!("{}\t{} {}\t{state}\t{}", text(&job["id"]), text(&job["cron"]), text(&job["zone"]), text(&job["source"]))
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}
