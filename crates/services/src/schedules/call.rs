//! What can be done with schedules, for the command line and for goose's clients: one answer for all doors.

use gander_agent::recipe::{Values, from_value};
use gander_domain::caller::Caller;
use gander_domain::{Command, RunOrigin, ServiceError};
use gander_runtime::hub::Ack;
use serde_json::{Value, json};

use super::run::{is_running, start};
use super::{Job, MOST, State, clock};
use crate::Services;
use crate::errors::{refusal, unavailable};
use crate::recipes::apply::flawed;
use crate::times::time;

/// Why a schedule is not made, changed or run.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// There is none of this name.
    #[error("no such schedule: {0}")]
    Missing(String),
    /// There is one of this name.
    #[error("there is a schedule of this name: {0}")]
    Taken(String),
    /// Anything else.
    #[error(transparent)]
    Refused(#[from] ServiceError),
}

/// A schedule as somebody wants it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Its name.
    pub id: String,
    /// When.
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
pub async fn create(desk: &Services, caller: &Caller, plan: Plan) -> Result<Value, Wrong> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ' ');
    if plan.id.is_empty() || plan.id.len() > 100 || !plan.id.chars().all(plain) {
        return Err(bad("id must have 1 to 100 letters, digits, dots, blanks, _ and -"));
    }
    if desk.schedules.get(&caller.principal, &plan.id).is_some() {
        return Err(Wrong::Taken(plan.id));
    }
    if desk.schedules.list(&caller.principal).len() >= MOST {
        return Err(bad(&format!("there are {MOST} schedules already")));
    }
    let recipe = from_value(plan.recipe.clone()).map_err(|flaw| flawed(&flaw))?;
    let zone = match &plan.zone {
        Some(zone) => clock::zone(zone).map_err(|error| bad(&error.to_string()))?,
        None => desk.schedules.zone().to_owned(),
    };
    clock::after(&plan.cron, &zone, gander_store::clock::now()).map_err(|error| bad(&error.to_string()))?;
    let workspace = match plan.workspace.as_deref() {
        Some(folder) => Some(desk.workspaces.choose(&desk.hub, caller, folder).await),
        None => None,
    };
    let workspace = workspace.transpose().map_err(|error| ServiceError::BadWorkspace(error.to_string()))?;
    let here = workspace.as_deref().unwrap_or("/");
    let filled = desk.recipes.ready(&recipe, &plan.values, here, plan.folder.as_deref()).await;
    filled.map_err(|flaw| flawed(&flaw))?;
    let job = Job {
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
        since: gander_store::clock::now(),
    };
    put(desk, job.clone()).await?;
    show(desk, caller, &job.id).await
}

/// Somebody's schedules.
pub async fn list(desk: &Services, caller: &Caller) -> Vec<Value> {
    let mut jobs = Vec::new();
    for state in desk.schedules.list(&caller.principal) {
        jobs.push(shown(desk, &state).await);
    }
    jobs
}

/// One of them.
pub async fn show(desk: &Services, caller: &Caller, id: &str) -> Result<Value, Wrong> {
    Ok(shown(desk, &known(desk, caller, id)?).await)
}

/// Gives it another time.
pub async fn update(desk: &Services, caller: &Caller, id: &str, cron: &str) -> Result<Value, Wrong> {
    let State { job, .. } = known(desk, caller, id)?;
    clock::after(cron, &job.zone, gander_store::clock::now()).map_err(|error| bad(&error.to_string()))?;
    put(desk, Job { cron: cron.to_owned(), since: gander_store::clock::now(), ..job }).await?;
    show(desk, caller, id).await
}

/// Lets it rest, or wakes it.
pub async fn pause(desk: &Services, caller: &Caller, id: &str, paused: bool) -> Result<(), Wrong> {
    let State { job, .. } = known(desk, caller, id)?;
    put(desk, Job { paused, since: gander_store::clock::now(), ..job }).await
}

/// Forgets it. Its sessions stay.
pub async fn delete(desk: &Services, caller: &Caller, id: &str) -> Result<(), Wrong> {
    let removed = desk.schedules.remove(&caller.principal, id).await;
    match removed.map_err(|error| unavailable(&error))? {
        true => Ok(()),
        false => Err(Wrong::Missing(id.to_owned())),
    }
}

/// Runs it now; gives its session.
pub async fn run_now(desk: &Services, caller: &Caller, id: &str) -> Result<String, Wrong> {
    known(desk, caller, id)?;
    Ok(start(desk, &caller.principal, id).await?.to_string())
}

/// Stops what it runs; false if it does not run.
pub async fn kill(desk: &Services, caller: &Caller, id: &str) -> Result<bool, Wrong> {
    let Some((_, session)) = known(desk, caller, id)?.last() else { return Ok(false) };
    if !is_running(desk, session).await {
        return Ok(false);
    }
    let origin = RunOrigin { by: caller.principal.clone(), door: "schedule".to_owned() };
    let cancelled = desk.hub.command(caller, session, Command::Cancel { run: None, origin }, Ack::Synced).await;
    cancelled.map_err(|error| refusal(session, &error))?;
    Ok(true)
}

/// What it runs now, if anything.
pub async fn inspect(desk: &Services, caller: &Caller, id: &str) -> Result<Value, Wrong> {
    let state = known(desk, caller, id)?;
    let Some((at, session)) = state.last() else { return Ok(json!({})) };
    if !is_running(desk, session).await {
        return Ok(json!({}));
    }
    let seconds = (gander_store::clock::now().micros() - at.micros()) / 1_000_000;
    Ok(json!({ "sessionId": session, "processStartTime": time(at), "runningDurationSeconds": seconds }))
}

/// Its last sessions, the latest first.
pub async fn sessions_of(desk: &Services, caller: &Caller, id: &str, limit: usize) -> Result<Vec<Value>, Wrong> {
    let state = known(desk, caller, id)?;
    let mut listed = Vec::new();
    for (_, session) in state.runs.iter().rev().take(limit) {
        // One that was deleted, or never began, is not listed.
        let Ok(view) = desk.hub.view_for(*session, &caller.principal).await else { continue };
        listed.push(json!({
            "id": view.session, "name": view.title.as_deref().unwrap_or(id), "createdAt": time(view.created_at),
            "workingDir": view.workspace, "scheduleId": id, "messageCount": view.messages,
            "inputTokens": view.last_usage.as_ref().map(|usage| usage.input),
            "outputTokens": view.last_usage.as_ref().map(|usage| usage.output),
            "accumulatedInputTokens": view.spent.input, "accumulatedOutputTokens": view.spent.output,
            "accumulatedTotalTokens": view.spent.input + view.spent.output,
        }));
    }
    Ok(listed)
}

async fn shown(desk: &Services, state: &State) -> Value {
    let State { job, trouble, .. } = state;
    let running = match state.last() {
        Some((at, session)) if is_running(desk, session).await => Some((at, session)),
        Some(_) | None => None,
    };
    json!({
        "id": job.id, "source": job.source, "cron": job.cron, "paused": job.paused, "zone": job.zone,
        "last_run": state.last().map(|(at, _)| time(at)), "next_run": state.next().map(time),
        "currently_running": running.is_some(), "current_session_id": running.map(|(_, session)| session),
        "process_start_time": running.map(|(at, _)| time(at)), "recipe_base_dir": job.folder,
        "working_dir": job.workspace, "trouble": trouble,
    })
}

fn known(desk: &Services, caller: &Caller, id: &str) -> Result<State, Wrong> {
    desk.schedules.get(&caller.principal, id).ok_or_else(|| Wrong::Missing(id.to_owned()))
}

async fn put(desk: &Services, job: Job) -> Result<(), Wrong> {
    Ok(desk.schedules.put(job).await.map_err(|error| unavailable(&error))?)
}

fn bad(text: &str) -> Wrong {
    Wrong::Refused(ServiceError::BadParams(text.to_owned()))
}
