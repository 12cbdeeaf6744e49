//! Starts schedules that are due, each as a session of its own.

use std::sync::Arc;
use std::time::Duration;

use gander_agent::recipe::recipe_from_value;
use gander_domain::caller::Caller;
use gander_domain::{Command, IfBusy, Part, Principal, RunId, RunOrigin, ServiceError, SessionId, Timestamp};
use gander_runtime::hub::Ack;
use gander_store::clock::{SystemIds, current_time};
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::apply_recipe::{ApplyRecipe, apply_recipe};
use crate::errors::{service_error_from_hub, service_error_from_recipe, service_error_from_store};
use crate::schedules::{MissedRuns, Schedule, ScheduleKey, ScheduleState};
use crate::sessions::{NewSession, SessionFolder};

/// The longest sleep: a machine that slept, or a clock that was set, is noticed by then.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// A time that is later than this was missed.
const LATE_MICROS: i64 = 60_000_000;

/// Starts every schedule when it is due, until it is stopped.
pub async fn run_due_schedules(services: Arc<Services>, stop: CancellationToken) {
    loop {
        let due = services.schedules.next_due();
        let wait = due.as_ref().map_or(MAX_SLEEP, |(_, at)| time_until_schedule(*at).min(MAX_SLEEP));
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = services.schedules.wait_for_change() => continue,
            () = tokio::time::sleep(wait) => {}
        }
        let Some(((owner, id), at)) = due.filter(|(_, at)| *at <= current_time()) else { continue };
        if current_time().as_micros() - at.as_micros() > LATE_MICROS
            && services.schedules.missed_runs() == MissedRuns::Skip
        {
            services.schedules.skip_missed(&(owner, id), current_time());
            continue;
        }
        if let Err(error) = start_due_schedule(&services, &(owner.clone(), id.clone()), at).await {
            tracing::warn!(schedule = id, %error, "a schedule could not run");
            services.schedules.record_failure(&owner, &id, error.to_string());
            services.schedules.skip_missed(&(owner, id), current_time());
        }
    }
}

/// Runs a schedule now. One that runs still is not run beside itself.
pub async fn start_schedule(services: &Services, owner: &Principal, id: &str) -> Result<SessionId, ServiceError> {
    let state = check_schedule_rests(services, owner, id).await?;
    let session = SessionId::make(&mut SystemIds);
    services
        .schedules
        .record_run(owner, id, current_time(), session)
        .await
        .map_err(|error| service_error_from_store(&error))?;
    begin_scheduled_session(services, &state.job, session).await?;
    Ok(session)
}

/// Runs a schedule for a time at which it is due, unless another node does.
async fn start_due_schedule(services: &Services, key: &ScheduleKey, due: Timestamp) -> Result<(), ServiceError> {
    let state = check_schedule_rests(services, &key.0, &key.1).await?;
    let session = SessionId::make(&mut SystemIds);
    let claimed = services.schedules.claim_due_run(key, due, current_time(), session).await;
    match claimed.map_err(|error| service_error_from_store(&error))? {
        true => begin_scheduled_session(services, &state.job, session).await,
        false => Ok(()),
    }
}

async fn check_schedule_rests(services: &Services, owner: &Principal, id: &str) -> Result<ScheduleState, ServiceError> {
    let missing = || ServiceError::BadParams(format!("no such schedule: {id}"));
    let state = services.schedules.get(owner, id).ok_or_else(missing)?;
    match state.last_run() {
        Some((_, session)) if is_schedule_running(services, session).await => {
            Err(ServiceError::BadParams(format!("the schedule runs already, in session {session}: {id}")))
        }
        Some(_) | None => Ok(state),
    }
}

/// True if a run of this session is under way or waits for somebody.
pub(crate) async fn is_schedule_running(services: &Services, session: SessionId) -> bool {
    services.hub.session_view(session).await.is_ok_and(|view| view.run.is_some())
}

async fn begin_scheduled_session(services: &Services, job: &Schedule, session: SessionId) -> Result<(), ServiceError> {
    let caller = schedule_caller(job);
    let recipe = recipe_from_value(job.recipe.clone()).map_err(|flaw| service_error_from_recipe(&flaw))?;
    let new = NewSession {
        workspace: job.workspace.clone().map(SessionFolder::ChosenBefore),
        meta: Some((services.schedule_meta)(job)),
        ..NewSession::with_id(session, services.default_session_settings())
    };
    let view = services.sessions.create(&caller, new).await?;
    let request = ApplyRecipe { recipe, values: job.values.clone(), folder: job.folder.clone(), approved: Vec::new() };
    let applied = apply_recipe(services, &caller, &view, request).await?;
    let words = applied.recipe.first_prompt();
    let prompt = Command::Prompt {
        run: RunId::make(&mut SystemIds),
        origin: RunOrigin { by: job.owner.clone(), door: "schedule".to_owned() },
        parts: vec![Part::text(words)],
        if_busy: IfBusy::Refuse,
        meta: None,
    };
    let started = services.hub.execute_command(&caller, session, prompt, Ack::Synced).await;
    started.map(drop).map_err(|error| service_error_from_hub(session, &error))
}

/// Whoever made the schedule, but not here: programs are not named from afar.
fn schedule_caller(job: &Schedule) -> Caller {
    Caller::internal(job.owner.clone())
}

fn time_until_schedule(at: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(at.as_micros() - current_time().as_micros()).unwrap_or(0))
}
