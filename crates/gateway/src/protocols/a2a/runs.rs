//! Saying something: a new task, an answer to one that asks, or a word into one that runs.

use gander_domain::{Accepted, Birth, Command, IfBusy, RunId, SessionId};
use gander_runtime::backend::Lent;
use gander_runtime::hub::{Ack, Begun, HubError};
use gander_store::clock::SystemIds;
use gander_store::{RunState, StoreError};
use gander_wire::a2a::input::Send;
use gander_wire::a2a::{Error, Kind, Message, PushConfig, Update, content, question};
use sha2::{Digest as _, Sha256};

use super::message_intent::{ANSWERED, Sent, WasSaid};
use super::sessions::alias;
use super::{A2a, Caller, Ends, Stream, Thread, refused};

/// A longer name for a context is no name.
const LONGEST_NAME: usize = 256;

impl A2a {
    /// Says something and waits for what comes of it, unless the caller does not want to wait.
    pub(super) async fn send(&self, caller: &Caller, send: Send) -> Result<Update<'static>, Error> {
        // Whoever waits for the outcome has its sync; whoever does not has this one.
        let (ack, ends) = if send.at_once { (Ack::Synced, Ends::AtOnce) } else { (Ack::Committed, Ends::Resting) };
        let thread = self.say(caller, &send, ack).await?;
        let update = self.outcome(caller, thread, ends).await?;
        Ok(match update {
            Update::Begin(task) => Update::Begin(Box::new(task.with_history(send.history))),
            other @ (Update::Chunk(_)
            | Update::Artifact(_)
            | Update::Status(_)
            | Update::Reply(_)
            | Update::Said(_)) => other,
        })
    }

    /// Says something and gives everything that comes of it.
    pub(super) async fn stream(&self, caller: &Caller, send: Send) -> Result<Stream, Error> {
        let thread = self.say(caller, &send, Ack::Committed).await?;
        self.open(caller, thread, Ends::Resting).await
    }

    async fn say(&self, caller: &Caller, send: &Send, ack: Ack) -> Result<Thread, Error> {
        let parts = content::prompt(&send.message, &caller.agent.takes)?;
        if let Some(config) = &send.push {
            same_task(&send.message, config)?;
            self.push.admit(config).await?;
        }
        let said = Sent::new(&send.message, parts, ack);
        let thread = match send.message.task_id.as_deref() {
            Some(task) => self.go_on(caller, task, said).await?,
            None => self.begin(caller, said).await?,
        };
        if let Some(config) = send.push.clone() {
            self.push.set(caller, &thread, config, thread.after).await?;
        }
        Ok(thread)
    }

    async fn begin(&self, caller: &Caller, said: Sent<'_>) -> Result<Thread, Error> {
        let Some(name) = said.message.context_id.as_deref() else {
            return self.create(caller, None, &said).await.map_err(refused);
        };
        if name.len() > LONGEST_NAME {
            return Err(Error::field("message.contextId", "is too long"));
        }
        if name.chars().any(char::is_control) {
            return Err(Error::field("message.contextId", "has characters that nobody can see"));
        }
        let session = match self.open_session(&caller.identity.principal, name).await? {
            Some(session) => session,
            None => match self.create(caller, Some(name), &said).await {
                Err(HubError::Store(StoreError::AliasTaken(session))) => session, // just now, by another message
                begun => return begun.map_err(refused),
            },
        };
        self.prompt(caller, session, name, said).await
    }

    /// One more message in a context.
    async fn prompt(
        &self,
        caller: &Caller,
        session: SessionId,
        context: &str,
        said: Sent<'_>,
    ) -> Result<Thread, Error> {
        let view = self.desk.hub.view_for(session, &caller.identity.principal).await.map_err(refused)?;
        let run = retry_safe(caller, session, &said.message.message_id);
        if self.desk.hub.knows_run(session, run).await.map_err(refused)? {
            return self.repeated(caller, run, &said).await;
        }
        if let Some(asking) = view.run.as_ref().filter(|run| run.holding().is_some()) {
            let message = format!("this context waits for an answer first, name its task: {}", asking.id);
            return Err(Error::new(Kind::UnsupportedOperation, message));
        }
        // A mode that is addressed is chosen; an agent leaves the context as it is.
        let roster = self.desk.agents.roster();
        if roster.agent(&caller.agent.name).is_none()
            && let Some(patch) = roster.choose(&caller.agent.name, &view.settings)
        {
            self.desk
                .hub
                .command(&caller.identity, session, Command::Configure { patch }, Ack::Committed)
                .await
                .map_err(refused)?;
        }
        let meta = Some(said.kept());
        let (parts, if_busy) = (said.parts.clone(), IfBusy::Queue);
        let command = Command::Prompt { run, origin: caller.origin(), parts, if_busy, meta };
        let accepted = self.desk.hub.command(&caller.identity, session, command, said.ack).await.map_err(refused)?;
        let after = match accepted {
            Accepted::Repeated(_) => return self.repeated(caller, run, &said).await,
            Accepted::Started(_) | Accepted::Queued(_) | Accepted::Steered(_) | Accepted::Done => view.head,
        };
        Ok(Thread { session, context: context.to_owned(), run, after, check_from: after.next(), newborn: None })
    }

    /// The task that this very message began.
    async fn repeated(&self, caller: &Caller, run: RunId, said: &Sent<'_>) -> Result<Thread, Error> {
        let (thread, _) = self.thread(caller, &run.to_string()).await?;
        match self.past(&thread, said, thread.after.next()).await?.said {
            WasSaid::Otherwise => Err(said.reused()),
            WasSaid::Not | WasSaid::Same => Ok(thread),
        }
    }

    /// A message about a task that is there already.
    async fn go_on(&self, caller: &Caller, id: &str, said: Sent<'_>) -> Result<Thread, Error> {
        let (mut thread, state) = self.thread(caller, id).await?;
        self.same_context(caller, &thread, said.message).await?;
        let no = |why: &str| Err(Error::new(Kind::UnsupportedOperation, format!("{why}: {id}")));
        let view = self.desk.hub.view_for(thread.session, &caller.identity.principal).await.map_err(refused)?;
        let past = self.past(&thread, &said, view.head).await?;
        match past.said {
            WasSaid::Same => return Ok(thread),
            WasSaid::Otherwise => return Err(said.reused()),
            WasSaid::Not => {}
        }
        match state {
            RunState::Queued => return no("task waits for its turn and takes no message"),
            RunState::Ended(..) => return no("task is over and takes no message"),
            RunState::Running | RunState::Awaiting => {}
        }
        let Some(run) = view.run.as_ref().filter(|run| run.id == thread.run) else {
            return no("task is over and takes no message");
        };
        let command = match question::addressed(&run.questions, said.message) {
            None if past.answers(said.message) => return no(ANSWERED),
            None if run.holding().is_some() || question::named(said.message).is_some() => {
                return Err(Error::field("message.metadata", format!("task does not ask this: {id}")));
            }
            None => said.steers(caller),
            Some(question) => said.answers(caller, question)?,
        };
        self.desk.hub.command(&caller.identity, thread.session, command, said.ack).await.map_err(refused)?;
        thread.check_from = view.head.next();
        Ok(thread)
    }

    async fn same_context(&self, caller: &Caller, thread: &Thread, message: &Message) -> Result<(), Error> {
        let Some(named) = message.context_id.as_deref().filter(|named| *named != thread.context) else { return Ok(()) };
        match self.session(&caller.identity.principal, named).await? {
            Some(session) if session == thread.session => Ok(()),
            Some(_) | None => {
                Err(Error::field("message.contextId", format!("the task is in another: {}", thread.context)))
            }
        }
    }

    /// A new context that begins with this message: one append holds both.
    async fn create(&self, caller: &Caller, name: Option<&str>, said: &Sent<'_>) -> Result<Thread, HubError> {
        let session = SessionId::make(&mut SystemIds);
        let workspace = self.desk.workspaces.private(session).map_err(|error| {
            tracing::error!(%error, "no folder for a new context");
            HubError::Gone(session)
        })?;
        let settings = self.desk.agents.settings(&caller.agent.name, &self.desk.settings);
        let settings = settings.ok_or(HubError::Gone(session))?;
        let owner = caller.identity.principal.clone();
        let birth = Birth { session, owner, workspace, folders: Vec::new(), settings, parent: None, meta: None };
        let aliases = name.map(|name| alias(&caller.identity.principal, name)).into_iter().collect();
        let run = match name {
            Some(_) => retry_safe(caller, session, &said.message.message_id),
            None => RunId::make(&mut SystemIds),
        };
        let (parts, meta) = (said.parts.clone(), Some(said.kept()));
        let prompt = Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::Queue, meta };
        let Begun { view, follower, accepted } =
            self.desk.hub.begin(&caller.identity, birth, aliases, prompt, said.ack, Lent::default()).await;
        accepted.await?;
        let context = name.map_or_else(|| session.to_string(), str::to_owned);
        let after = view.head;
        Ok(Thread { session, context, run, after, check_from: after.next(), newborn: Some(follower) })
    }
}

/// Where updates are sent and what is said are about one task.
fn same_task(message: &Message, config: &PushConfig) -> Result<(), Error> {
    match message.task_id.as_deref() {
        Some(task) if !config.task_id.is_empty() && config.task_id != task => {
            let field = "configuration.taskPushNotificationConfig.taskId";
            Err(Error::field(field, "and message.taskId differ"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The same message in the same context is the same run, however often it is sent.
fn retry_safe(caller: &Caller, session: SessionId, message: &str) -> RunId {
    let mut hash = Sha256::new();
    for piece in [caller.identity.principal.as_str().as_bytes(), session.uuid().as_bytes(), message.as_bytes()] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    RunId::new(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}
