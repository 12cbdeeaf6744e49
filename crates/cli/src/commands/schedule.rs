//! `gander schedule`: recipes that run at set times.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Subcommand, ValueHint};
use gander_client::AgentConnection;
use serde_json::{Value, json};

use super::{client, recipes, shell_completion};
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;
use crate::terminal::list_table::{print_list_table, table_local_time_of};

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// List schedules with their next run
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Add a schedule that runs a recipe
    Add {
        /// Name of the schedule
        #[arg(value_name = "NAME")]
        id: String,
        /// When to run, as five or six cron fields
        #[arg(long, value_name = "PATTERN")]
        cron: String,
        /// The recipe: a file, a name from `gander recipes list`, or a link
        #[arg(long, value_name = "RECIPE", add = shell_completion::complete_all_recipes())]
        recipe: String,
        /// Set a parameter of the recipe
        #[arg(long = "param", value_name = "KEY=VALUE")]
        params: Vec<String>,
        /// Time zone, such as Europe/Berlin [default: schedules.zone, else the system's]
        #[arg(long, value_name = "ZONE", add = shell_completion::complete_zones())]
        zone: Option<String>,
        /// The folder to work in [default: a private one each time]
        #[arg(long, value_name = "DIR", alias = "folder", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
    },
    /// Show one schedule
    Show {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Pause a schedule
    Pause {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
    },
    /// Resume a paused schedule
    Unpause {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
    },
    /// Run a schedule now; prints the session ID
    Run {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
    },
    /// Cancel the run that is under way
    Kill {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
    },
    /// List the sessions of a schedule, the latest first
    Sessions {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Remove a schedule; its sessions stay
    Remove {
        /// Name of the schedule
        #[arg(value_name = "NAME", add = shell_completion::complete_schedules())]
        id: String,
    },
}

pub(super) async fn run(context: Context, command: ScheduleCommand) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let (method, params) = match &command {
        ScheduleCommand::List { .. } => ("list", json!({})),
        ScheduleCommand::Add { id, cron, recipe, params, zone, cwd } => {
            let found = recipes::find_recipe(&context.config, &here, recipe).await?;
            let folder = cwd
                .as_ref()
                .map(|cwd| cwd.canonicalize().with_context(|| format!("no such folder: {}", cwd.display())));
            let params = json!({
                "id": id, "cron": cron, "zone": zone, "recipe": found.value, "values": recipes::recipe_values(params)?,
                "workingDir": folder.transpose()?, "folder": found.folder, "source": found.source,
            });
            ("create", params)
        }
        ScheduleCommand::Show { id, .. } => ("read", json!({ "id": id })),
        ScheduleCommand::Pause { id } => ("pause", json!({ "id": id })),
        ScheduleCommand::Unpause { id } => ("unpause", json!({ "id": id })),
        ScheduleCommand::Run { id } => ("run-now", json!({ "id": id })),
        ScheduleCommand::Kill { id } => ("kill", json!({ "id": id })),
        ScheduleCommand::Sessions { id, .. } => ("sessions", json!({ "id": id })),
        ScheduleCommand::Remove { id } => ("delete", json!({ "id": id })),
    };
    let mut connection = client::connect_client(&context.config, &here).await?;
    let answer = connection.call_method(&format!("_goose/unstable/schedules/{method}"), &params).await?;
    print_schedule_result(&context, &command, &answer)?;
    if matches!(command, ScheduleCommand::Add { .. } | ScheduleCommand::List { json: false }) {
        warn_schedule_of_demo_model(&context, &mut connection).await?;
    }
    Ok(Exit::Done)
}

/// Schedules have the server's own model: a key that is only set in this shell does not reach them.
async fn warn_schedule_of_demo_model(context: &Context, connection: &mut AgentConnection) -> anyhow::Result<()> {
    let catalog = connection.call_method("_gander/catalog", &json!({})).await?;
    let is_demo = catalog["defaultModel"].as_str().is_some_and(|model| model.starts_with("demo/"));
    let is_chosen = context.config.sections.model.default.as_deref().is_some_and(|model| model.starts_with("demo/"));
    if is_demo && !is_chosen {
        context.output.note(
            "! The server has no model: schedules get the scripted demo. Set one up with `gander setup`, or restart the \
             server where a key is set: gander server restart",
        );
    }
    Ok(())
}

fn print_schedule_result(context: &Context, command: &ScheduleCommand, answer: &Value) -> anyhow::Result<()> {
    let output = context.output;
    let items = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    match command {
        ScheduleCommand::List { json: true } => {
            items("jobs").iter().try_for_each(|job| output.line(&job.to_string()))?;
        }
        ScheduleCommand::List { json: false } => print_schedules(context, &items("jobs"))?,
        ScheduleCommand::Add { id, .. } => {
            output.note(&format!(
                "Added {}. Next run: {}",
                clean_output_text(id),
                table_local_time_of(&answer["next_run"])
            ));
        }
        ScheduleCommand::Show { json: true, .. } => output.line(&serde_json::to_string_pretty(answer)?)?,
        ScheduleCommand::Show { json: false, .. } => show_schedule(context, answer)?,
        ScheduleCommand::Run { .. } => output.line(&schedule_text(&answer["sessionId"]))?,
        ScheduleCommand::Kill { id } => {
            let done = if answer["killed"] == true { "Cancelled the run of" } else { "No run is under way in" };
            output.note(&format!("{done} {}.", clean_output_text(id)));
        }
        ScheduleCommand::Sessions { json: true, .. } => {
            items("sessions").iter().try_for_each(|session| output.line(&session.to_string()))?;
        }
        ScheduleCommand::Sessions { id, json: false } if items("sessions").is_empty() => {
            output.note(&format!("{} has not run yet.", clean_output_text(id)));
        }
        ScheduleCommand::Sessions { json: false, .. } => {
            let row = |session: &Value| {
                vec![
                    schedule_text(&session["id"]),
                    table_local_time_of(&session["createdAt"]),
                    schedule_text(&session["name"]),
                ]
            };
            let rows: Vec<Vec<String>> = items("sessions").iter().map(row).collect();
            print_list_table(output, &["SESSION", "STARTED", "TITLE"], &rows)?;
        }
        ScheduleCommand::Pause { id } => {
            output.note(&format!("Paused {0}. To resume it: gander schedule unpause {0}", clean_output_text(id)));
        }
        ScheduleCommand::Unpause { id } => output.note(&format!("Resumed {}.", clean_output_text(id))),
        ScheduleCommand::Remove { id } => output.note(&format!("Removed {}.", clean_output_text(id))),
    }
    Ok(())
}

fn print_schedules(context: &Context, jobs: &[Value]) -> anyhow::Result<()> {
    if jobs.is_empty() {
        context.output.note("No schedules yet. Add one: gander schedule add NAME --cron \"0 7 * * *\" --recipe FILE");
        return Ok(());
    }
    let row = |job: &Value| {
        let cron = format!("{} {}", schedule_text(&job["cron"]), schedule_text(&job["zone"]));
        vec![
            schedule_text(&job["id"]),
            cron.trim().to_owned(),
            table_local_time_of(&job["next_run"]),
            schedule_state(job),
            schedule_text(&job["source"]),
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    print_list_table(context.output, &["NAME", "CRON", "NEXT RUN", "STATE", "RECIPE"], &rows)?;
    Ok(())
}

fn show_schedule(context: &Context, job: &Value) -> anyhow::Result<()> {
    let folder = job["working_dir"].as_str().map_or_else(|| "a private one each time".to_owned(), clean_output_text);
    for (name, value) in [
        ("name", schedule_text(&job["id"])),
        ("cron", schedule_text(&job["cron"])),
        ("time zone", schedule_text(&job["zone"])),
        ("state", schedule_state(job)),
        ("next run", table_local_time_of(&job["next_run"])),
        ("last run", table_local_time_of(&job["last_run"])),
        ("recipe", schedule_text(&job["source"])),
        ("folder", folder),
    ] {
        context.output.line(&format!("{name:<10} {}", if value.is_empty() { "–" } else { &value }))?;
    }
    Ok(())
}

fn schedule_state(job: &Value) -> String {
    match (job["currently_running"] == true, job["paused"] == true, job["trouble"].as_str()) {
        (true, ..) => format!("running in {}", schedule_text(&job["current_session_id"])),
        (false, true, _) => "paused".to_owned(),
        (false, false, Some(trouble)) => format!("failed: {}", clean_output_text(trouble)),
        (false, false, None) => "waiting".to_owned(),
    }
}

fn schedule_text(value: &Value) -> String {
    clean_output_text(value.as_str().unwrap_or_default())
}
