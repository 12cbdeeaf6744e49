//! Tasks folded from the log, waited for, and followed as streams.

use gander_domain::{Entry, Seq};
use gander_runtime::hub::Follower;
use gander_store::{Cursor, Form, Limit, StoreError};
use gander_wire::a2a::encode::Frame;
use gander_wire::a2a::{Error, Kind, Opening, Subject, Task, TaskState, Update, Watch};

use super::{A2a, Caller, Thread, stored};
use crate::sse::{Frames, Reading};

/// A longer buffer is given back: who reads slowly must not hold it.
const KEPT_LINE: usize = 16 * 1024;

/// When there is nothing more to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// As soon as there is a task.
    AtOnce,
    /// When it is over or asks.
    Resting,
    /// When it is over.
    Terminal,
}

/// A task's updates from some place on.
pub struct Stream {
    /// What turns entries into updates: it has seen everything up to the place.
    pub watch: Watch,
    /// The task up to the place, if the stream begins with it.
    pub snapshot: Option<Task>,
    /// Where the log goes on.
    pub follower: Follower,
    /// When the stream ends.
    pub ends: Ends,
    /// The place from which on it may end.
    pub check_from: Seq,
}

/// A task's stream as the events of one binding.
pub struct TaskReading {
    watch: Watch,
    frame: Frame,
    snapshot: Option<Task>,
    ends: Ends,
    check_from: Seq,
    over: bool,
    line: Vec<u8>,
}

impl Ends {
    pub(super) fn at(self, state: TaskState) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Resting => state.is_terminal() || state.is_interrupted(),
            Self::Terminal => state.is_terminal(),
        }
    }
}

impl A2a {
    /// Everything about a task that is in the log now: what watches it, the task, and the place.
    pub(super) async fn fold(&self, caller: &Caller, thread: &Thread) -> Result<(Watch, Option<Task>, Seq), Error> {
        let store = self.desk.hub.store();
        let mut watch = Watch::new(thread.subject(caller), caller.detail, Opening::AtOnce);
        let (mut task, mut at) = (None, thread.after);
        loop {
            let page = store.read(thread.session, at, Limit::default(), Form::Joined).await.map_err(stored)?;
            let Some(last) = page.last() else { return Ok((watch, task, at)) };
            at = last.seq;
            for entry in &page {
                watch.take(entry).into_iter().for_each(|update| Task::apply(&mut task, update));
            }
            if task.as_ref().is_some_and(|task: &Task| task.status.state.is_terminal()) {
                return Ok((watch, task, at));
            }
        }
    }

    /// Waits for what came of something said.
    pub(super) async fn outcome(&self, caller: &Caller, thread: Thread, ends: Ends) -> Result<Update<'static>, Error> {
        let mut watch = Watch::new(thread.subject(caller), caller.detail, Opening::AtOnce);
        let follow = || self.desk.hub.follow(thread.session, thread.after, Form::Joined);
        let mut follower = thread.newborn.unwrap_or_else(follow);
        let mut task: Option<Task> = None;
        while let Some(batch) = follower.next().await.map_err(stored)? {
            for entry in batch.iter() {
                for update in watch.take(entry) {
                    if let Update::Reply(message) = update {
                        return Ok(Update::Reply(message));
                    }
                    Task::apply(&mut task, update);
                }
                if let Some(task) = task.take_if(|task| entry.seq >= thread.check_from && ends.at(task.status.state)) {
                    return Ok(Update::Begin(Box::new(task)));
                }
            }
        }
        Err(Error::new(Kind::Unavailable, "the context is gone"))
    }

    /// Waits until a task is over.
    pub(super) async fn until(&self, caller: &Caller, thread: Thread, ends: Ends) -> Result<Task, Error> {
        let run = thread.run;
        match self.outcome(caller, thread, ends).await? {
            Update::Begin(task) => Ok(*task),
            Update::Chunk(_) | Update::Artifact(_) | Update::Status(_) | Update::Reply(_) | Update::Said(_) => {
                Err(Error::no_task(&run.to_string()))
            }
        }
    }

    /// A stream of what comes of something said: a new task from its beginning, another from where it is.
    pub(super) async fn open(&self, caller: &Caller, thread: Thread, ends: Ends) -> Result<Stream, Error> {
        let fresh = thread.check_from == thread.after.next();
        let hub = &self.desk.hub;
        if fresh {
            let watch = Watch::new(thread.subject(caller), caller.detail, caller.opening());
            let (session, after) = (thread.session, thread.after);
            let follower = thread.newborn.unwrap_or_else(|| hub.follow(session, after, Form::Exact));
            return Ok(Stream { watch, snapshot: None, follower, ends, check_from: after.next() });
        }
        let (watch, snapshot, at) = self.fold(caller, &thread).await?;
        let follower = hub.follow(thread.session, at, Form::Exact);
        Ok(Stream { watch, snapshot, follower, ends, check_from: thread.check_from })
    }

    /// A stream of a task that is not over, from where it is.
    pub(super) async fn subscribe(&self, caller: &Caller, id: &str) -> Result<Stream, Error> {
        let (thread, _) = self.thread(caller, id).await?;
        let (watch, task, at) = self.fold(caller, &thread).await?;
        let over = task.as_ref().is_none_or(|task| task.status.state.is_terminal());
        if over {
            return Err(Error::new(Kind::UnsupportedOperation, format!("task is over: {id}")));
        }
        let follower = self.desk.hub.follow(thread.session, at, Form::Exact);
        Ok(Stream { watch, snapshot: task, follower, ends: Ends::Terminal, check_from: at.next() })
    }

    /// A stream that goes on after an event that the client has, also to the end of a task that is over.
    pub async fn resume(&self, caller: &Caller, id: &str, seen: Cursor) -> Result<Stream, Error> {
        let (thread, _) = self.thread(caller, id).await?;
        self.desk.hub.store().honour(thread.session, seen).await.map_err(|error| {
            if matches!(error, StoreError::Truncated { .. }) {
                return Error::new(Kind::Truncated, format!("the log does not have this event, subscribe anew: {id}"));
            }
            stored(error)
        })?;
        let watch = Watch::new(thread.subject(caller), caller.detail, caller.opening());
        let follower = self.desk.hub.follow(thread.session, thread.after, Form::Exact);
        let check_from = seen.seq.next();
        Ok(Stream { watch, snapshot: None, follower, ends: Ends::Terminal, check_from })
    }
}

impl Stream {
    /// Which task it is about.
    pub fn subject(&self) -> &Subject {
        self.watch.subject()
    }

    /// True if nothing follows this update of this entry.
    pub fn ends_with(&self, seq: Seq, update: &Update<'_>) -> bool {
        is_last(self.ends, self.check_from, seq, update)
    }

    /// The stream as events in this frame, and where they come from.
    pub fn reading(self, frame: Frame) -> (Follower, TaskReading) {
        let Self { watch, snapshot, follower, ends, check_from } = self;
        let over = snapshot.as_ref().is_some_and(|task| task.status.state.is_terminal());
        (follower, TaskReading { watch, frame, snapshot, ends, check_from, over, line: Vec::new() })
    }
}

fn is_last(ends: Ends, check_from: Seq, seq: Seq, update: &Update<'_>) -> bool {
    let rests = matches!(update, Update::Reply(_)) || update.state().is_some_and(|state| ends.at(state));
    rests && seq >= check_from
}

impl Reading for TaskReading {
    fn begin(&mut self, frames: &mut Frames) {
        if let Some(task) = self.snapshot.take() {
            self.line.clear();
            self.frame.write(&Update::Begin(Box::new(task)), &mut self.line);
            frames.written_aside(&self.line);
            self.line = Vec::new();
        }
    }

    fn read(&mut self, entry: &Entry, frames: &mut Frames) {
        for update in self.watch.take(entry) {
            let last = is_last(self.ends, self.check_from, entry.seq, &update);
            self.line.clear();
            if self.frame.write(&update, &mut self.line) {
                frames.written(&self.line);
            }
            self.line.shrink_to(KEPT_LINE);
            if last {
                self.over = true;
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
