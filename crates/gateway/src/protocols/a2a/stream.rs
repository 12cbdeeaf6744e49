//! Tasks folded from the log, waited for, and followed as streams.

use gander_domain::{Entry, Seq};
use gander_http::sse::{SseProjection, SseWriter};
use gander_runtime::hub::Follower;
use gander_store::{Cursor, DeltaForm, Limit, StoreError};
use gander_wire::a2a::json::JsonEventFrame;
use gander_wire::a2a::{
    A2aError, A2aErrorKind, A2aProjection, A2aTask, TaskOpening, TaskState, TaskSubject, TaskUpdate,
};

use super::{A2a, A2aCaller, TaskRef, a2a_store_error};

/// A longer buffer is given back: who reads slowly must not hold it.
const KEEP_CAPACITY: usize = 16 * 1024;

/// When there is nothing more to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWhen {
    /// As soon as there is a task.
    AtOnce,
    /// When it is over or asks.
    Resting,
    /// When it is over.
    Terminal,
}

/// A task's updates from some place on.
pub struct TaskStream {
    /// What turns entries into updates: it has seen everything up to the place.
    pub watch: A2aProjection,
    /// The task up to the place, if the stream begins with it.
    pub snapshot: Option<A2aTask>,
    /// Where the log goes on.
    pub follower: Follower,
    /// When the stream ends.
    pub ends: StopWhen,
    /// The place from which on it may end.
    pub check_from: Seq,
}

/// A task's stream as the events of one binding.
pub struct TaskProjection {
    watch: A2aProjection,
    frame: JsonEventFrame,
    snapshot: Option<A2aTask>,
    ends: StopWhen,
    check_from: Seq,
    over: bool,
    line: Vec<u8>,
}

impl StopWhen {
    pub(super) fn is_reached_by(self, state: TaskState) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Resting => state.is_terminal() || state.is_interrupted(),
            Self::Terminal => state.is_terminal(),
        }
    }
}

impl A2a {
    /// Everything about a task that is in the log now: what watches it, the task, and the place.
    pub(super) async fn rebuild_task(
        &self,
        caller: &A2aCaller,
        task_ref: &TaskRef,
    ) -> Result<(A2aProjection, Option<A2aTask>, Seq), A2aError> {
        let store = self.services.hub.store();
        let mut watch = A2aProjection::new(task_ref.subject(caller), caller.detail, TaskOpening::AtOnce);
        let (mut task, mut at) = (None, task_ref.after);
        loop {
            let page =
                store.read(task_ref.session, at, Limit::default(), DeltaForm::Joined).await.map_err(a2a_store_error)?;
            let Some(last) = page.last() else { return Ok((watch, task, at)) };
            at = last.seq;
            for entry in &page {
                watch.project_entry(entry).into_iter().for_each(|update| A2aTask::apply_update(&mut task, update));
            }
            if task.as_ref().is_some_and(|task: &A2aTask| task.status.state.is_terminal()) {
                return Ok((watch, task, at));
            }
        }
    }

    /// Waits for what came of something said.
    pub(super) async fn wait_for_update(
        &self,
        caller: &A2aCaller,
        task_ref: TaskRef,
        ends: StopWhen,
    ) -> Result<TaskUpdate<'static>, A2aError> {
        let mut watch = A2aProjection::new(task_ref.subject(caller), caller.detail, TaskOpening::AtOnce);
        let follow = || self.services.hub.follow_session(task_ref.session, task_ref.after, DeltaForm::Joined);
        let mut follower = task_ref.newborn.unwrap_or_else(follow);
        let mut task: Option<A2aTask> = None;
        while let Some(batch) = follower.next_batch().await.map_err(a2a_store_error)? {
            for entry in batch.iter() {
                for update in watch.project_entry(entry) {
                    if let TaskUpdate::Reply(message) = update {
                        return Ok(TaskUpdate::Reply(message));
                    }
                    A2aTask::apply_update(&mut task, update);
                }
                if let Some(task) =
                    task.take_if(|task| entry.seq >= task_ref.check_from && ends.is_reached_by(task.status.state))
                {
                    return Ok(TaskUpdate::Begin(Box::new(task)));
                }
            }
        }
        Err(A2aError::new(A2aErrorKind::Unavailable, "the context is gone"))
    }

    /// Waits until a task is over.
    pub(super) async fn wait_for_task(
        &self,
        caller: &A2aCaller,
        task_ref: TaskRef,
        ends: StopWhen,
    ) -> Result<A2aTask, A2aError> {
        let run = task_ref.run;
        match self.wait_for_update(caller, task_ref, ends).await? {
            TaskUpdate::Begin(task) => Ok(*task),
            TaskUpdate::Chunk(_)
            | TaskUpdate::Artifact(_)
            | TaskUpdate::Status(_)
            | TaskUpdate::Reply(_)
            | TaskUpdate::Said(_) => Err(A2aError::no_such_task(&run.to_string())),
        }
    }

    /// A stream of what comes of something said: a new task from its beginning, another from where it is.
    pub(super) async fn open_stream(
        &self,
        caller: &A2aCaller,
        task_ref: TaskRef,
        ends: StopWhen,
    ) -> Result<TaskStream, A2aError> {
        let fresh = task_ref.check_from == task_ref.after.next();
        let hub = &self.services.hub;
        if fresh {
            let watch = A2aProjection::new(task_ref.subject(caller), caller.detail, caller.task_opening());
            let (session, after) = (task_ref.session, task_ref.after);
            let follower = task_ref.newborn.unwrap_or_else(|| hub.follow_session(session, after, DeltaForm::Exact));
            return Ok(TaskStream { watch, snapshot: None, follower, ends, check_from: after.next() });
        }
        let (watch, snapshot, at) = self.rebuild_task(caller, &task_ref).await?;
        let follower = hub.follow_session(task_ref.session, at, DeltaForm::Exact);
        Ok(TaskStream { watch, snapshot, follower, ends, check_from: task_ref.check_from })
    }

    /// A stream of a task that is not over, from where it is.
    pub(super) async fn subscribe_task(&self, caller: &A2aCaller, id: &str) -> Result<TaskStream, A2aError> {
        let (task_ref, _) = self.find_task(caller, id).await?;
        let (watch, task, at) = self.rebuild_task(caller, &task_ref).await?;
        let over = task.as_ref().is_none_or(|task| task.status.state.is_terminal());
        if over {
            return Err(A2aError::new(A2aErrorKind::UnsupportedOperation, format!("task is over: {id}")));
        }
        let follower = self.services.hub.follow_session(task_ref.session, at, DeltaForm::Exact);
        Ok(TaskStream { watch, snapshot: task, follower, ends: StopWhen::Terminal, check_from: at.next() })
    }

    /// A stream that goes on after an event that the client has, also to the end of a task that is over.
    pub async fn resume_stream(&self, caller: &A2aCaller, id: &str, seen: Cursor) -> Result<TaskStream, A2aError> {
        let (task_ref, _) = self.find_task(caller, id).await?;
        self.services.hub.store().validate_cursor(task_ref.session, seen).await.map_err(|error| {
            if matches!(error, StoreError::Truncated { .. }) {
                return A2aError::new(
                    A2aErrorKind::Truncated,
                    format!("the log does not have this event, subscribe anew: {id}"),
                );
            }
            a2a_store_error(error)
        })?;
        let watch = A2aProjection::new(task_ref.subject(caller), caller.detail, caller.task_opening());
        let follower = self.services.hub.follow_session(task_ref.session, task_ref.after, DeltaForm::Exact);
        let check_from = seen.seq.next();
        Ok(TaskStream { watch, snapshot: None, follower, ends: StopWhen::Terminal, check_from })
    }
}

impl TaskStream {
    /// Which task it is about.
    pub fn subject(&self) -> &TaskSubject {
        self.watch.subject()
    }

    /// True if nothing follows this update of this entry.
    pub fn ends_with(&self, seq: Seq, update: &TaskUpdate<'_>) -> bool {
        is_last_stream_update(self.ends, self.check_from, seq, update)
    }

    /// The stream as events in this frame, and where they come from.
    pub fn into_projection(self, frame: JsonEventFrame) -> (Follower, TaskProjection) {
        let Self { watch, snapshot, follower, ends, check_from } = self;
        let over = snapshot.as_ref().is_some_and(|task| task.status.state.is_terminal());
        (follower, TaskProjection { watch, frame, snapshot, ends, check_from, over, line: Vec::new() })
    }
}

fn is_last_stream_update(ends: StopWhen, check_from: Seq, seq: Seq, update: &TaskUpdate<'_>) -> bool {
    let rests = matches!(update, TaskUpdate::Reply(_)) || update.state().is_some_and(|state| ends.is_reached_by(state));
    rests && seq >= check_from
}

impl SseProjection for TaskProjection {
    fn write_start(&mut self, frames: &mut SseWriter) {
        if let Some(task) = self.snapshot.take() {
            self.line.clear();
            self.frame.write_update(&TaskUpdate::Begin(Box::new(task)), &mut self.line);
            frames.write_unlogged_json(&self.line);
            self.line = Vec::new();
        }
    }

    fn project_entry(&mut self, entry: &Entry, frames: &mut SseWriter) {
        for update in self.watch.project_entry(entry) {
            let last = is_last_stream_update(self.ends, self.check_from, entry.seq, &update);
            self.line.clear();
            if self.frame.write_update(&update, &mut self.line) {
                frames.write_json(&self.line);
            }
            self.line.shrink_to(KEEP_CAPACITY);
            if last {
                self.over = true;
                return;
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.over
    }
}
