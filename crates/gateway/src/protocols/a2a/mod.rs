//! A2A, whatever the binding: requests carried out, tasks found, followed and folded from the log.

mod canonical_card;
mod card_signing;
mod error;
mod message_intent;
pub mod push;
pub(crate) mod routes;
mod runs;
mod settings;
mod state;
mod stream;
mod task_list;
mod tasks;

use std::fmt;
use std::sync::Arc;

use gander_domain::{AgentManifest, RunId, RunOrigin, Seq, SessionId, SlashCommand};
use gander_wire::a2a::{
    A2aDialect, A2aError, A2aErrorKind, A2aRequest, A2aTask, DetailLevel, PROTOCOL_NAME, PushConfig, TaskOpening,
    TaskPage, TaskSubject, TaskUpdate,
};

pub use card_signing::{CardSigner, SignError};
use error::{a2a_hub_error, a2a_session_error, a2a_store_error};
pub use push::PushNotifications;
pub use settings::A2aSection;
pub use settings::A2aSettings;
pub use state::{A2aProtocol, A2aState};
pub use stream::{StopWhen, TaskProjection, TaskStream};

use gander_runtime::hub::Follower;
use gander_services::{Services, slash_commands};

/// The server side of A2A.
pub struct A2a {
    services: Arc<Services>,
    push: PushNotifications,
    first: Option<String>,
}

/// Who asks, of which agent, and in which words.
#[derive(Clone, Debug)]
pub struct A2aCaller {
    pub identity: gander_domain::caller::Caller,
    /// Of which agent.
    pub agent: Arc<AgentManifest>,
    /// In which words.
    pub dialect: A2aDialect,
    /// How much is wanted.
    pub detail: DetailLevel,
    /// Where the caller found us: addresses of ours begin with this.
    pub base: String,
}

/// What came of a request.
pub enum A2aAnswer {
    /// Something was said: this is the task, or the agent's mere message.
    Sent(TaskUpdate<'static>),
    /// A task.
    Task(Box<A2aTask>),
    /// Some tasks.
    Page(TaskPage),
    /// Where updates are sent.
    Push(PushConfig),
    /// All of these.
    Pushes(Vec<PushConfig>),
    /// It is gone.
    Deleted,
    /// The card, with these slash commands, is the binding's to make: only it knows under which name it was called.
    Card(Vec<SlashCommand>),
    /// Everything from here on.
    Stream(Box<TaskStream>),
}

/// A run in its session.
pub(super) struct TaskRef {
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
    /// A2A in front of these sessions.
    pub fn new(services: Arc<Services>, push: PushNotifications, settings: &A2aSection) -> Self {
        let first = settings.agent.clone();
        Self { services, push, first }
    }

    /// The agent of this name; no name is the first one.
    pub fn find_agent(&self, name: &str) -> Option<Arc<AgentManifest>> {
        if !name.is_empty() {
            return self.services.agents.manifest(name);
        }
        let first = self.first.as_deref().and_then(|first| self.services.agents.manifest(first));
        first.or_else(|| Some(self.services.agents.default_manifest()))
    }

    /// All agents, the first one first.
    pub fn list_agents(&self) -> Vec<Arc<AgentManifest>> {
        self.services.agents.manifests()
    }

    /// Which life of the log this is.
    pub fn incarnation(&self) -> u32 {
        self.services.hub.store().incarnation()
    }

    /// Carries out a request.
    pub async fn handle_request(&self, caller: &A2aCaller, request: A2aRequest) -> Result<A2aAnswer, A2aError> {
        match request {
            A2aRequest::Send(send) => self.send_message(caller, *send).await.map(A2aAnswer::Sent),
            A2aRequest::Stream(send) => {
                self.send_streaming_message(caller, *send).await.map(Box::new).map(A2aAnswer::Stream)
            }
            A2aRequest::Get { id, history } => {
                let task = self.load_task(caller, &id).await?;
                Ok(A2aAnswer::Task(Box::new(task.with_history_length(history))))
            }
            A2aRequest::List(list) => self.list_tasks(caller, *list).await.map(A2aAnswer::Page),
            A2aRequest::Cancel { id } => self.cancel_task(caller, &id).await.map(Box::new).map(A2aAnswer::Task),
            A2aRequest::Subscribe { id } => self.subscribe_task(caller, &id).await.map(Box::new).map(A2aAnswer::Stream),
            A2aRequest::SetPush(config) => {
                self.push.refresh_now().await.map_err(a2a_store_error)?;
                let (task_ref, _) = self.find_task_to_change(caller, &config.task_id.clone()).await?;
                let head = self.services.hub.store().head(task_ref.session).await.map_err(a2a_store_error)?;
                self.push.set_config(caller, &task_ref, config, head).await.map(A2aAnswer::Push)
            }
            A2aRequest::GetPush { task, id } => {
                self.push.refresh_now().await.map_err(a2a_store_error)?;
                let (task_ref, _) = self.find_task_to_change(caller, &task).await?;
                self.push.get_config(task_ref.run, id.as_deref()).map(A2aAnswer::Push)
            }
            A2aRequest::ListPush { task } => {
                self.push.refresh_now().await.map_err(a2a_store_error)?;
                let (task_ref, _) = self.find_task_to_change(caller, &task).await?;
                Ok(A2aAnswer::Pushes(self.push.list_configs(task_ref.run)))
            }
            A2aRequest::DeletePush { task, id } => {
                self.push.refresh_now().await.map_err(a2a_store_error)?;
                let (task_ref, _) = self.find_task_to_change(caller, &task).await?;
                self.push.delete_config(task_ref.run, &id).await?;
                Ok(A2aAnswer::Deleted)
            }
            A2aRequest::ExtendedCard => self.list_commands(caller).await.map(A2aAnswer::Card),
        }
    }

    /// The slash commands that this caller may begin a message to this agent with.
    async fn list_commands(&self, caller: &A2aCaller) -> Result<Vec<SlashCommand>, A2aError> {
        let listed =
            slash_commands::list_agent_slash_commands(&self.services, &caller.identity, &caller.agent.name).await;
        listed.map_err(|error| A2aError::new(A2aErrorKind::Internal, error.to_string()))
    }
}

impl fmt::Debug for A2a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2a").field("first", &self.first).finish_non_exhaustive()
    }
}

impl TaskRef {
    fn subject(&self, caller: &A2aCaller) -> TaskSubject {
        TaskSubject {
            task: self.run,
            context: self.context.clone(),
            artifacts_url: Some(caller.artifacts_url(self.session)),
        }
    }
}

impl A2aCaller {
    fn origin(&self) -> RunOrigin {
        RunOrigin { by: self.identity.principal.clone(), door: PROTOCOL_NAME.to_owned() }
    }

    /// Where the caller reads what a session keeps. No agent's name begins with a dot.
    fn artifacts_url(&self, session: SessionId) -> String {
        format!("{}/a2a/.artifacts/{session}", self.base)
    }

    /// An agent that may answer with a mere message shows no task before it is known that it does not.
    fn task_opening(&self) -> TaskOpening {
        let mere = self.agent.capabilities.iter().any(|capability| capability.name == MESSAGE_ONLY_CAPABILITY);
        if mere { TaskOpening::WhenKnown } else { TaskOpening::AtOnce }
    }
}

/// The capability of an agent that may answer with a message and no task.
pub const MESSAGE_ONLY_CAPABILITY: &str = "a2a-messages";
