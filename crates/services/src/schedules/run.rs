//! Keeps the clock: what is due begins as a session of its own.

use std::sync::Arc;
use std::time::Duration;

use gander_agent::recipe::from_value;
use gander_domain::caller::Caller;
use gander_domain::{Birth, Command, IfBusy, Part, Principal, RunId, RunOrigin, ServiceError, SessionId, Timestamp};
use gander_runtime::hub::Ack;
use gander_store::clock::{SystemIds, now};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Job, Missed};
use crate::Services;
use crate::errors::{refusal, unavailable};
use crate::recipes::apply::flawed;
use crate::recipes::{Wish, apply};

/// The longest sleep: a machine that slept, or a clock that was set, is noticed by then.
const NAP: Duration = Duration::from_secs(30);

/// A time that is later than this was missed.
const LATE: i64 = 60_000_000;

/// Starts what is due, until it is stopped.
pub async fn keep(desk: Arc<Services>, stop: CancellationToken) {
    loop {
        let due = desk.schedules.next();
        let wait = due.as_ref().map_or(NAP, |(_, at)| until(*at).min(NAP));
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = desk.schedules.wake.notified() => continue,
            () = tokio::time::sleep(wait) => {}
        }
        let Some(((owner, id), at)) = due.filter(|(_, at)| *at <= now()) else { continue };
        if now().micros() - at.micros() > LATE && desk.schedules.missed == Missed::Skip {
            desk.schedules.pass_over(&(owner, id), now());
            continue;
        }
        if let Err(error) = start(&desk, &owner, &id).await {
            tracing::warn!(schedule = id, %error, "a schedule could not run");
            desk.schedules.failed(&owner, &id, error.to_string());
            desk.schedules.pass_over(&(owner, id), now());
        }
    }
}

/// Runs a schedule now. One that runs still is not run beside itself.
pub async fn start(desk: &Services, owner: &Principal, id: &str) -> Result<SessionId, ServiceError> {
    let missing = || ServiceError::BadParams(format!("no such schedule: {id}"));
    let state = desk.schedules.get(owner, id).ok_or_else(missing)?;
    if let Some((_, session)) = state.last()
        && is_running(desk, session).await
    {
        return Err(ServiceError::BadParams(format!("the schedule runs already, in session {session}: {id}")));
    }
    let session = SessionId::make(&mut SystemIds);
    desk.schedules.ran(owner, id, now(), session).await.map_err(|error| unavailable(&error))?;
    begin(desk, &state.job, session).await?;
    Ok(session)
}

/// True if a run of this session is under way or waits for somebody.
pub(super) async fn is_running(desk: &Services, session: SessionId) -> bool {
    desk.hub.view(session).await.is_ok_and(|view| view.run.is_some())
}

async fn begin(desk: &Services, job: &Job, session: SessionId) -> Result<(), ServiceError> {
    let caller = caller_of(job);
    let recipe = from_value(job.recipe.clone()).map_err(|flaw| flawed(&flaw))?;
    let folder = match &job.workspace {
        Some(folder) => desk.workspaces.check(&job.owner, folder).map(|()| folder.clone()),
        None => desk.workspaces.private(session),
    };
    let birth = Birth {
        session,
        owner: job.owner.clone(),
        workspace: folder.map_err(|error| ServiceError::BadWorkspace(error.to_string()))?,
        folders: Vec::new(),
        settings: desk.settings.clone(),
        parent: None,
        meta: Some(json!({ "goose": { "session_type": "scheduled", "schedule_id": job.id, "recipe": job.recipe } })),
    };
    let view = desk.hub.create(&caller, birth, Vec::new()).await.map_err(|error| refusal(session, &error))?;
    let wish = Wish { recipe, values: job.values.clone(), folder: job.folder.clone(), approved: Vec::new() };
    let begun = apply(desk, &caller, &view, wish).await?;
    let words = begun.recipe.asked();
    let prompt = Command::Prompt {
        run: RunId::make(&mut SystemIds),
        origin: RunOrigin { by: job.owner.clone(), door: "schedule".to_owned() },
        parts: vec![Part::text(words)],
        if_busy: IfBusy::Refuse,
        meta: None,
    };
    let begun = desk.hub.command(&caller, session, prompt, Ack::Synced).await;
    begun.map(drop).map_err(|error| refusal(session, &error))
}

/// Whoever made the schedule, but not here: programs are not named from afar.
fn caller_of(job: &Job) -> Caller {
    Caller::internal(job.owner.clone())
}

fn until(at: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(at.micros() - now().micros()).unwrap_or(0))
}
