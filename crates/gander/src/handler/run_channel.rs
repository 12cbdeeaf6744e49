//! Between a handler and the session of its run: reports go out, answers and starts of tools come in.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gander_domain::{QuestionId, QuestionOrigin, Reply, Report, SessionId, ToolCallId};
use gander_services::artifacts::{ArtifactScope, Artifacts};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::journal::{Journal, Step};
use super::{Artifact, HandlerDurability, UpdateError};

/// What the sink of a run and its tool calls share.
pub(super) struct RunChannel {
    session: SessionId,
    durability: HandlerDurability,
    artifacts: Artifacts,
    /// Taken away when the run is over: a sink that somebody kept must not hold the session.
    reports: Mutex<Option<mpsc::Sender<Report>>>,
    waits: Mutex<Waits>,
    journal: Mutex<Journal>,
    cancel: CancellationToken,
    /// Cancelled when a durable handler has nothing left to do but wait for an answer.
    park: CancellationToken,
}

/// Who waits inside the handler.
#[derive(Default)]
struct Waits {
    answers: HashMap<QuestionId, oneshot::Sender<Reply>>,
    starts: HashMap<ToolCallId, oneshot::Sender<()>>,
}

/// What a run channel is made of.
pub(super) struct RunChannelParts {
    pub(super) session: SessionId,
    pub(super) durability: HandlerDurability,
    pub(super) artifacts: Artifacts,
    pub(super) reports: mpsc::Sender<Report>,
    pub(super) journal: Journal,
    pub(super) cancel: CancellationToken,
}

impl RunChannel {
    pub(super) fn new(parts: RunChannelParts) -> Self {
        let RunChannelParts { session, durability, artifacts, reports, journal, cancel } = parts;
        Self {
            session,
            durability,
            artifacts,
            reports: Mutex::new(Some(reports)),
            waits: Mutex::default(),
            journal: Mutex::new(journal),
            cancel,
            park: CancellationToken::new(),
        }
    }

    /// Who waits for the answer to a question of this handler: the log alone, or the handler too.
    pub(super) fn question_origin(&self) -> QuestionOrigin {
        match self.durability {
            HandlerDurability::InMemory => QuestionOrigin::Held,
            HandlerDurability::Durable => QuestionOrigin::Parked,
        }
    }

    /// Tells the session, unless it was told when the handler was called before.
    pub(super) async fn send_report(&self, report: Report) -> Result<(), UpdateError> {
        if self.cancel.is_cancelled() {
            return Err(UpdateError::Cancelled);
        }
        if lock_run_channel(&self.journal).is_replaying() {
            return Ok(());
        }
        let reports = lock_run_channel(&self.reports).clone().ok_or(UpdateError::Ended)?;
        reports.send(report).await.map_err(|_| UpdateError::Ended)
    }

    /// What the handler did at this place before, if it is called again.
    pub(super) fn next_step(&self) -> Option<Step> {
        lock_run_channel(&self.journal).next_step()
    }

    /// Asks, and waits for the answer. A durable handler ends here and is called again.
    pub(super) async fn ask_and_wait(&self, question: QuestionId, report: Report) -> Result<Reply, UpdateError> {
        let (sender, answer) = oneshot::channel();
        // Before it is asked: the answer may be quicker than this task.
        lock_run_channel(&self.waits).answers.insert(question, sender);
        self.send_report(report).await?;
        match self.durability {
            HandlerDurability::InMemory => self.wait_for(answer).await,
            HandlerDurability::Durable => self.park_here().await,
        }
    }

    /// Reports something that lets a tool start, and waits until its start is in the log.
    pub(super) async fn start_and_wait(&self, call: ToolCallId, report: Report) -> Result<(), UpdateError> {
        let (sender, started) = oneshot::channel();
        lock_run_channel(&self.waits).starts.insert(call, sender);
        self.send_report(report).await?;
        self.wait_for(started).await
    }

    /// Nothing is left to do: whoever drives the handler drops it.
    pub(super) async fn park_here<T>(&self) -> T {
        self.park.cancel();
        std::future::pending().await
    }

    /// Saves an artifact, then tells of it.
    pub(super) async fn save_artifact(&self, artifact: Artifact) -> Result<(), UpdateError> {
        if lock_run_channel(&self.journal).is_replaying() {
            return Ok(());
        }
        let new = artifact.into_version();
        let (name, mime, content) = (new.name.clone(), new.mime.clone(), new.content.content_for_log());
        let saved = self.artifacts.save(&ArtifactScope::for_session(self.session), new).await.map_err(|error| {
            tracing::warn!(%error, name, "an artifact was not saved");
            UpdateError::ArtifactRefused
        })?;
        let version = saved.number;
        self.send_report(Report::ArtifactSaved { name, version, mime, content, call: None }).await
    }

    pub(super) fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn handle_answer(&self, question: QuestionId, reply: Reply) {
        if let Some(waiting) = lock_run_channel(&self.waits).answers.remove(&question) {
            // A handler that does not wait any more was dropped or cancelled.
            waiting.send(reply).ok();
        }
    }

    pub(super) fn handle_start(&self, call: ToolCallId) {
        if let Some(waiting) = lock_run_channel(&self.waits).starts.remove(&call) {
            waiting.send(()).ok();
        }
    }

    pub(super) async fn wait_until_parked(&self) {
        self.park.cancelled().await;
    }

    /// Nothing that comes after this is told.
    pub(super) fn close(&self) -> Option<mpsc::Sender<Report>> {
        lock_run_channel(&self.reports).take()
    }

    async fn wait_for<T>(&self, wanted: oneshot::Receiver<T>) -> Result<T, UpdateError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(UpdateError::Cancelled),
            found = wanted => found.map_err(|_| UpdateError::Ended),
        }
    }
}

fn lock_run_channel<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
