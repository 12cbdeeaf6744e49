//! What callers can do with schedules: the same answers for the command line and for goose's clients.

use gander_agent::recipe::{Values, recipe_from_value};
use gander_domain::caller::Caller;
use gander_domain::{Command, RunOrigin, ServiceError};
use gander_runtime::hub::Ack;
use serde_json::{Value, json};

use crate::Services;
use crate::errors::{service_error_from_hub, service_error_from_recipe, service_error_from_store};
use crate::scheduler::{is_schedule_running, start_schedule};
use crate::schedules::{MAX_SCHEDULES, Schedule, ScheduleState, canonical_time_zone, cron};
use crate::times::format_rfc3339;

/// Why a schedule is not made, changed or run.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There is none of this name.
    #[error("no such schedule: {0}")]
    Missing(String),
    /// There is one of this name.
    #[error("a schedule with this name already exists: {0}")]
    Taken(String),
    /// Anything else.
    #[error(transparent)]
    Refused(#[from] ServiceError),
}

/// A schedule that is to be made.
#[derive(Clone, Debug, Default)]
pub struct NewSchedule {
    /// Its name.
    pub id: String,
    pub cron: String,
    /// In which time zone; absent: the server's.
    pub zone: Option<String>,
    /// What it runs.
    pub recipe: Value,
    /// What is filled in.
    pub values: Values,
    /// Where it works.
    pub workspace: Option<String>,
    /// The recipe's folder.
    pub folder: Option<String>,
    /// Where the recipe came from, for people.
    pub source: Option<String>,
}

/// Makes a schedule. What could not run is refused now, not at night.
pub async fn create_schedule(services: &Services, caller: &Caller, plan: NewSchedule) -> Result<Value, ScheduleError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ');
    if plan.id.is_empty() || plan.id.len() > 100 || !plan.id.chars().all(plain) {
        return Err(bad_schedule_params("id must have 1 to 100 letters, digits, dots, blanks, _ and -"));
    }
    if services.schedules.get(&caller.principal, &plan.id).is_some() {
        return Err(ScheduleError::Taken(plan.id));
    }
    if services.schedules.list(&caller.principal).len() >= MAX_SCHEDULES {
        return Err(bad_schedule_params(&format!("there are {MAX_SCHEDULES} schedules already")));
    }
    let recipe = recipe_from_value(plan.recipe.clone()).map_err(|flaw| service_error_from_recipe(&flaw))?;
    let zone = match &plan.zone {
        Some(zone) => canonical_time_zone(zone).map_err(|error| bad_schedule_params(&error.to_string()))?,
        None => services.schedules.default_time_zone().to_owned(),
    };
    cron::next_cron_occurrence(&plan.cron, &zone, gander_store::clock::current_time())
        .map_err(|error| bad_schedule_params(&error.to_string()))?;
    let workspace = match plan.workspace.as_deref() {
        Some(folder) => Some(services.workspaces.choose_workspace(&services.hub, caller, folder).await),
        None => None,
    };
    let workspace = workspace.transpose().map_err(|error| ServiceError::BadWorkspace(error.to_string()))?;
    let here = workspace.as_deref().unwrap_or("/");
    let filled = services.recipes.fill_recipe(&recipe, &plan.values, here, plan.folder.as_deref()).await;
    filled.map_err(|flaw| service_error_from_recipe(&flaw))?;
    let job = Schedule {
        source: plan.source.unwrap_or_else(|| format!("{}.json", plan.id)),
        id: plan.id,
        owner: caller.principal.clone(),
        cron: plan.cron,
        zone,
        recipe: plan.recipe,
        values: plan.values,
        workspace,
        folder: plan.folder,
        paused: false,
        since: gander_store::clock::current_time(),
    };
    save_schedule(services, job.clone()).await?;
    show_schedule(services, caller, &job.id).await
}

/// Somebody's schedules.
pub async fn list_schedules(services: &Services, caller: &Caller) -> Vec<Value> {
    let mut jobs = Vec::new();
    for state in services.schedules.list(&caller.principal) {
        jobs.push(schedule_json(services, &state).await);
    }
    jobs
}

/// One of them.
pub async fn show_schedule(services: &Services, caller: &Caller, id: &str) -> Result<Value, ScheduleError> {
    Ok(schedule_json(services, &find_schedule(services, caller, id)?).await)
}

/// Gives it another time.
pub async fn update_schedule_cron(
    services: &Services,
    caller: &Caller,
    id: &str,
    cron: &str,
) -> Result<Value, ScheduleError> {
    let ScheduleState { job, .. } = find_schedule(services, caller, id)?;
    cron::next_cron_occurrence(cron, &job.zone, gander_store::clock::current_time())
        .map_err(|error| bad_schedule_params(&error.to_string()))?;
    save_schedule(services, Schedule { cron: cron.to_owned(), since: gander_store::clock::current_time(), ..job })
        .await?;
    show_schedule(services, caller, id).await
}

/// Lets it rest, or wakes it.
pub async fn pause_schedule(services: &Services, caller: &Caller, id: &str, paused: bool) -> Result<(), ScheduleError> {
    let ScheduleState { job, .. } = find_schedule(services, caller, id)?;
    save_schedule(services, Schedule { paused, since: gander_store::clock::current_time(), ..job }).await
}

/// Forgets it. Its sessions stay.
pub async fn delete_schedule(services: &Services, caller: &Caller, id: &str) -> Result<(), ScheduleError> {
    let removed = services.schedules.remove(&caller.principal, id).await;
    match removed.map_err(|error| service_error_from_store(&error))? {
        true => Ok(()),
        false => Err(ScheduleError::Missing(id.to_owned())),
    }
}

/// Runs it now; gives its session.
pub async fn run_schedule_now(services: &Services, caller: &Caller, id: &str) -> Result<String, ScheduleError> {
    find_schedule(services, caller, id)?;
    Ok(start_schedule(services, &caller.principal, id).await?.to_string())
}

/// Stops what it runs; false if it does not run.
pub async fn cancel_schedule_run(services: &Services, caller: &Caller, id: &str) -> Result<bool, ScheduleError> {
    let Some((_, session)) = find_schedule(services, caller, id)?.last_run() else { return Ok(false) };
    if !is_schedule_running(services, session).await {
        return Ok(false);
    }
    let origin = RunOrigin { by: caller.principal.clone(), door: "schedule".to_owned() };
    let cancelled =
        services.hub.execute_command(caller, session, Command::Cancel { run: None, origin }, Ack::Synced).await;
    cancelled.map_err(|error| service_error_from_hub(session, &error))?;
    Ok(true)
}

/// What it runs now, if anything.
pub async fn inspect_schedule_run(services: &Services, caller: &Caller, id: &str) -> Result<Value, ScheduleError> {
    let state = find_schedule(services, caller, id)?;
    let Some((at, session)) = state.last_run() else { return Ok(json!({})) };
    if !is_schedule_running(services, session).await {
        return Ok(json!({}));
    }
    let seconds = (gander_store::clock::current_time().as_micros() - at.as_micros()) / 1_000_000;
    Ok(json!({ "sessionId": session, "processStartTime": format_rfc3339(at), "runningDurationSeconds": seconds }))
}

/// Its last sessions, the latest first.
pub async fn list_schedule_sessions(
    services: &Services,
    caller: &Caller,
    id: &str,
    limit: usize,
) -> Result<Vec<Value>, ScheduleError> {
    let state = find_schedule(services, caller, id)?;
    let mut listed = Vec::new();
    for (_, session) in state.runs.iter().rev().take(limit) {
        // One that was deleted, or never began, is not listed.
        let Ok(view) = services.sessions.view(caller, *session).await else { continue };
        listed.push(json!({
            "id": view.session, "name": view.title.as_deref().unwrap_or(id), "createdAt": format_rfc3339(view.created_at),
            "workingDir": view.workspace, "scheduleId": id, "messageCount": view.messages,
            "inputTokens": view.last_usage.as_ref().map(|usage| usage.input),
            "outputTokens": view.last_usage.as_ref().map(|usage| usage.output),
            "accumulatedInputTokens": view.spent.input, "accumulatedOutputTokens": view.spent.output,
            "accumulatedTotalTokens": view.spent.input + view.spent.output,
        }));
    }
    Ok(listed)
}

async fn schedule_json(services: &Services, state: &ScheduleState) -> Value {
    let ScheduleState { job, last_error, .. } = state;
    let running = match state.last_run() {
        Some((at, session)) if is_schedule_running(services, session).await => Some((at, session)),
        Some(_) | None => None,
    };
    json!({
        "id": job.id, "source": job.source, "cron": job.cron, "paused": job.paused, "zone": job.zone,
        "last_run": state.last_run().map(|(at, _)| format_rfc3339(at)), "next_run": state.next_run().map(format_rfc3339),
        "currently_running": running.is_some(), "current_session_id": running.map(|(_, session)| session),
        "process_start_time": running.map(|(at, _)| format_rfc3339(at)), "recipe_base_dir": job.folder,
        "working_dir": job.workspace, "trouble": last_error,
    })
}

fn find_schedule(services: &Services, caller: &Caller, id: &str) -> Result<ScheduleState, ScheduleError> {
    services.schedules.get(&caller.principal, id).ok_or_else(|| ScheduleError::Missing(id.to_owned()))
}

async fn save_schedule(services: &Services, job: Schedule) -> Result<(), ScheduleError> {
    Ok(services.schedules.put(job).await.map_err(|error| service_error_from_store(&error))?)
}

fn bad_schedule_params(text: &str) -> ScheduleError {
    ScheduleError::Refused(ServiceError::BadParams(text.to_owned()))
}
