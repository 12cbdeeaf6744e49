//! The A2A door, whatever the binding: requests carried out, tasks found, followed and folded from the log.

mod card_signing;
mod message_intent;
pub mod push;
pub(crate) mod routes;
mod runs;
mod sessions;
mod state;
mod stream;
mod task_list;

use std::fmt;
use std::sync::Arc;

use gander_domain::{AgentManifest, CommandError, RunId, RunOrigin, Seq, SessionId};
use gander_wire::a2a::{
    DOOR, Detail, Dialect, Error, Kind, Opening, PushConfig, Request, Subject, Task, TaskPage, Update,
};

pub use card_signing::{SignError, Signer};
pub use push::Push;
pub use state::A2aState;
pub use stream::{Ends, Stream, TaskReading};

use crate::settings::A2aSection;
use gander_runtime::hub::{Follower, HubError};
use gander_services::Services;
use gander_store::StoreError;

/// The A2A door.
pub struct A2a {
    desk: Arc<Services>,
    push: Push,
    first: Option<String>,
}

/// Who asks, of which agent, and in which words.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub identity: gander_domain::caller::Caller,
    /// Of which agent.
    pub agent: Arc<AgentManifest>,
    /// In which words.
    pub dialect: Dialect,
    /// How much is wanted.
    pub detail: Detail,
    /// Where the caller found us: addresses of ours begin with this.
    pub base: String,
}

/// What came of a request.
pub enum Answer {
    /// Something was said: this is the task, or the agent's mere message.
    Sent(Update<'static>),
    /// A task.
    Task(Box<Task>),
    /// Some tasks.
    Page(TaskPage),
    /// Where updates are sent.
    Push(PushConfig),
    /// All of these.
    Pushes(Vec<PushConfig>),
    /// It is gone.
    Deleted,
    /// The card is the binding's to make: only it knows under which name it was called.
    Card,
    /// Everything from here on.
    Stream(Box<Stream>),
}

/// A run in its session.
pub(super) struct Thread {
    session: SessionId,
    context: String,
    run: RunId,
    /// Its first entry comes after this.
    after: Seq,
    /// From here on it may be told that the task rests.
    check_from: Seq,
    /// The log of a session that began with this run.
    newborn: Option<Follower>,
}

impl A2a {
    /// The door to these sessions.
    pub fn new(desk: Arc<Services>, push: Push, settings: &A2aSection) -> Self {
        let first = settings.agent.clone();
        Self { desk, push, first }
    }

    /// The agent of this name; no name is the first one.
    pub fn agent(&self, name: &str) -> Option<Arc<AgentManifest>> {
        if !name.is_empty() {
            return self.desk.agents.manifest(name);
        }
        let first = self.first.as_deref().and_then(|first| self.desk.agents.manifest(first));
        first.or_else(|| Some(self.desk.agents.default_manifest()))
    }

    /// All agents, the first one first.
    pub fn agents(&self) -> Vec<Arc<AgentManifest>> {
        self.desk.agents.manifests()
    }

    /// Which life of the log this is.
    pub fn incarnation(&self) -> u32 {
        self.desk.hub.store().incarnation()
    }

    /// Carries out a request.
    pub async fn call(&self, caller: &Caller, request: Request) -> Result<Answer, Error> {
        permitted(caller, &request)?;
        match request {
            Request::Send(send) => self.send(caller, *send).await.map(Answer::Sent),
            Request::Stream(send) => self.stream(caller, *send).await.map(Box::new).map(Answer::Stream),
            Request::Get { id, history } => {
                let task = self.task(caller, &id).await?;
                Ok(Answer::Task(Box::new(task.with_history(history))))
            }
            Request::List(list) => self.list(caller, *list).await.map(Answer::Page),
            Request::Cancel { id } => self.cancel(caller, &id).await.map(Box::new).map(Answer::Task),
            Request::Subscribe { id } => self.subscribe(caller, &id).await.map(Box::new).map(Answer::Stream),
            Request::SetPush(config) => {
                let (thread, _) = self.thread(caller, &config.task_id.clone()).await?;
                let head = self.desk.hub.store().head(thread.session).await.map_err(stored)?;
                self.push.set(caller, &thread, config, head).await.map(Answer::Push)
            }
            Request::GetPush { task, id } => {
                let (thread, _) = self.thread(caller, &task).await?;
                self.push.get(thread.run, id.as_deref()).map(Answer::Push)
            }
            Request::ListPush { task } => {
                let (thread, _) = self.thread(caller, &task).await?;
                Ok(Answer::Pushes(self.push.list(thread.run)))
            }
            Request::DeletePush { task, id } => {
                let (thread, _) = self.thread(caller, &task).await?;
                self.push.delete(thread.run, &id).await?;
                Ok(Answer::Deleted)
            }
            Request::ExtendedCard => Ok(Answer::Card),
        }
    }
}

impl fmt::Debug for A2a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2a").field("first", &self.first).finish_non_exhaustive()
    }
}

impl Thread {
    fn subject(&self, caller: &Caller) -> Subject {
        Subject { task: self.run, context: self.context.clone(), shelf: Some(caller.shelf(self.session)) }
    }
}

impl Caller {
    fn origin(&self) -> RunOrigin {
        RunOrigin { by: self.identity.principal.clone(), door: DOOR.to_owned() }
    }

    /// Where the caller reads what a session keeps. No agent's name begins with a dot.
    fn shelf(&self, session: SessionId) -> String {
        format!("{}/a2a/.artifacts/{session}", self.base)
    }

    /// An agent that may answer with a mere message shows no task before it is known that it does not.
    fn opening(&self) -> Opening {
        let mere = self.agent.capabilities.iter().any(|capability| capability.name == MERE_MESSAGES);
        if mere { Opening::WhenKnown } else { Opening::AtOnce }
    }
}

/// The capability of an agent that may answer with a message and no task.
pub const MERE_MESSAGES: &str = "a2a-messages";

/// Whatever changes something needs more than a token that reads. Push configurations hold credentials.
fn permitted(caller: &Caller, request: &Request) -> Result<(), Error> {
    match request {
        Request::Get { .. } | Request::List(_) | Request::Subscribe { .. } | Request::ExtendedCard => Ok(()),
        Request::Send(_)
        | Request::Stream(_)
        | Request::Cancel { .. }
        | Request::SetPush(_)
        | Request::GetPush { .. }
        | Request::ListPush { .. }
        | Request::DeletePush { .. } => caller.identity.may_prompt().map_err(|denied| refused(denied.into())),
    }
}

/// What the hub refuses, in the words of this protocol.
fn refused(error: HubError) -> Error {
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => Error::new(Kind::TooMany, error.to_string()),
        HubError::Refused(CommandError::EmptyPrompt) => Error::field("message.parts", "must say something"),
        HubError::Refused(CommandError::BadAnswer(why)) => Error::field("message.parts", why),
        HubError::Refused(_) => Error::new(Kind::UnsupportedOperation, error.to_string()),
        HubError::Denied(denied) => Error::new(Kind::Forbidden, denied.to_string()),
        HubError::Draining => Error::new(Kind::Unavailable, error.to_string()),
        HubError::Store(error) => stored(error),
        HubError::Gone(_) => Error::new(Kind::Internal, error.to_string()),
    }
}

/// What the store refuses. What went wrong inside is told to the log alone.
fn stored(error: StoreError) -> Error {
    match error {
        StoreError::NotFound(id) | StoreError::Deleted(id) => {
            Error::new(Kind::TaskNotFound, format!("context not found: {id}"))
        }
        inside @ (StoreError::Exists(_)
        | StoreError::Fenced { .. }
        | StoreError::Gap { .. }
        | StoreError::Truncated { .. }
        | StoreError::AliasTaken(_)
        | StoreError::Invalid(_)
        | StoreError::Corrupt(_)
        | StoreError::ReadOnly(_)
        | StoreError::Busy(_)
        | StoreError::Failed(_)
        | StoreError::Locked(_)
        | StoreError::Newer { .. }
        | StoreError::Closed) => {
            tracing::error!(error = %inside, "the store failed a request");
            Error::new(Kind::Unavailable, "the store failed, see the server's log")
        }
    }
}
