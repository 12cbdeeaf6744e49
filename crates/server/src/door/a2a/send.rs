//! Saying something: a new task, an answer to one that asks, or a word into one that runs.

use gander_domain::{Accepted, Birth, Command, IfBusy, Part, RunId, SessionId};
use gander_wire::a2a::input::Send;
use gander_wire::a2a::{Error, Kind, Message, Update, content, question};
use sha2::{Digest as _, Sha256};

use super::find::alias;
use super::{A2a, Caller, Ends, Stream, Thread, refused};
use crate::backend::Lent;
use crate::clock::SystemIds;
use crate::hub::{Ack, Begun, HubError};
use crate::log::{RunState, StoreError};
use crate::token::Scope;

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
            self.push.admit(config).await?;
        }
        let thread = match send.message.task_id.as_deref() {
            Some(task) => self.go_on(caller, task, &send.message, parts, ack).await?,
            None => self.begin(caller, &send.message, parts, ack).await?,
        };
        if let Some(config) = send.push.clone() {
            self.push.set(caller, &thread, config, thread.after).await?;
        }
        Ok(thread)
    }

    async fn begin(&self, caller: &Caller, message: &Message, parts: Vec<Part>, ack: Ack) -> Result<Thread, Error> {
        let Some(name) = message.context_id.as_deref() else {
            return self.create(caller, None, message, parts, ack).await.map_err(refused);
        };
        if name.len() > LONGEST_NAME {
            return Err(Error::field("message.contextId", "is too long"));
        }
        if name.chars().any(char::is_control) {
            return Err(Error::field("message.contextId", "has characters that nobody can see"));
        }
        let session = match self.session(&caller.identity.principal, name).await? {
            Some(session) => session,
            None => match self.create(caller, Some(name), message, parts.clone(), ack).await {
                Err(HubError::Store(StoreError::AliasTaken(session))) => session, // just now, by another message
                begun => return begun.map_err(refused),
            },
        };
        self.prompt(caller, session, name, message, parts, ack).await
    }

    /// One more message in a context.
    async fn prompt(
        &self,
        caller: &Caller,
        session: SessionId,
        context: &str,
        message: &Message,
        parts: Vec<Part>,
        ack: Ack,
    ) -> Result<Thread, Error> {
        let view = self.desk.hub.view_for(session, &caller.identity.principal).await.map_err(refused)?;
        let run = retry_safe(caller, session, &message.message_id);
        if self.desk.hub.knows_run(session, run).await.map_err(refused)? {
            return self.thread(caller, &run.to_string()).await.map(|(thread, _)| thread);
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
            self.desk.hub.command(session, Command::Configure { patch }, Ack::Committed).await.map_err(refused)?;
        }
        let meta = Some(content::kept(message));
        let command = Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::Queue, meta };
        let accepted = self.desk.hub.command(session, command, ack).await.map_err(refused)?;
        let after = match accepted {
            Accepted::Repeated(_) => return self.thread(caller, &run.to_string()).await.map(|(thread, _)| thread),
            Accepted::Started(_) | Accepted::Queued(_) | Accepted::Steered(_) | Accepted::Done => view.head,
        };
        Ok(Thread { session, context: context.to_owned(), run, after, check_from: after.next(), newborn: None })
    }

    /// A message about a task that is there already.
    async fn go_on(
        &self,
        caller: &Caller,
        id: &str,
        message: &Message,
        parts: Vec<Part>,
        ack: Ack,
    ) -> Result<Thread, Error> {
        let (mut thread, state) = self.thread(caller, id).await?;
        self.same_context(caller, &thread, message).await?;
        let no = |why: &str| Err(Error::new(Kind::UnsupportedOperation, format!("{why}: {id}")));
        match state {
            RunState::Queued => return no("task waits for its turn and takes no message"),
            RunState::Ended(..) if self.was_said(caller, &thread, message).await? => return Ok(thread),
            RunState::Ended(..) => return no("task is over and takes no message"),
            RunState::Running | RunState::Awaiting => {}
        }
        let view = self.desk.hub.view_for(thread.session, &caller.identity.principal).await.map_err(refused)?;
        let Some(run) = view.run.as_ref().filter(|run| run.id == thread.run) else {
            return no("task is over and takes no message");
        };
        let command = match question::addressed(&run.questions, message) {
            None if self.was_said(caller, &thread, message).await? => return Ok(thread),
            None if run.holding().is_some() || question::named(message).is_some() => {
                return Err(Error::field("message.metadata", format!("task does not ask this: {id}")));
            }
            None => {
                let run = RunId::make(&mut SystemIds);
                Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::Steer, meta: None }
            }
            Some(_) if !caller.identity.may(Scope::Approve) => return no("this token may not answer for the task"),
            Some(question) => Command::Answer {
                question: question.id,
                reply: question::reply(question, message)?,
                origin: caller.origin(),
                meta: Some(Box::new(content::kept(message))),
            },
        };
        self.desk.hub.command(thread.session, command, ack).await.map_err(refused)?;
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

    /// True if this very message is in the task: then saying it again changes nothing.
    async fn was_said(&self, caller: &Caller, thread: &Thread, message: &Message) -> Result<bool, Error> {
        let (_, task, _) = self.fold(caller, thread).await?;
        Ok(task.is_some_and(|task| task.history.iter().any(|said| said.message_id == message.message_id)))
    }

    /// A new context that begins with this message: one append holds both.
    async fn create(
        &self,
        caller: &Caller,
        name: Option<&str>,
        message: &Message,
        parts: Vec<Part>,
        ack: Ack,
    ) -> Result<Thread, HubError> {
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
            Some(_) => retry_safe(caller, session, &message.message_id),
            None => RunId::make(&mut SystemIds),
        };
        let meta = Some(content::kept(message));
        let prompt = Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::Queue, meta };
        let Begun { view, follower, accepted } =
            self.desk.hub.begin(birth, aliases, prompt, ack, Lent::default()).await;
        accepted.await?;
        let context = name.map_or_else(|| session.to_string(), str::to_owned);
        let after = view.head;
        Ok(Thread { session, context, run, after, check_from: after.next(), newborn: Some(follower) })
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
