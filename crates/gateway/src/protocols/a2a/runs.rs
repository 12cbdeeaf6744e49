//! Saying something: a new task, an answer to one that asks, or a word into one that runs.

use gander_domain::{Accepted, Command, IfBusy, RunId, SessionId};
use gander_runtime::hub::{Ack, HubError, StartedSession};
use gander_services::sessions::{FirstPrompt, NewSession, SessionError, SessionFolder};
use gander_services::{prompts, slash_commands};
use gander_store::RunState;
use gander_store::clock::SystemIds;
use gander_wire::a2a::requests::SendRequest;
use gander_wire::a2a::{A2aError, A2aErrorKind, A2aMessage, PushConfig, TaskUpdate, content, question};
use sha2::{Digest as _, Sha256};

use super::message_intent::{ALREADY_ANSWERED, MessageSeen, SentMessage};
use super::tasks::a2a_context_alias;
use super::{A2a, A2aCaller, StopWhen, TaskRef, TaskStream, a2a_hub_error, a2a_session_error};

/// A longer name for a context is no name.
const MAX_CONTEXT_NAME: usize = 256;

/// Where in a message's metadata stands the folder that its new context works in.
const WORKSPACE_METADATA: &str = "gander/workspace";

impl A2a {
    /// Says something and waits for what comes of it, unless the caller does not want to wait.
    pub(super) async fn send_message(
        &self,
        caller: &A2aCaller,
        send: SendRequest,
    ) -> Result<TaskUpdate<'static>, A2aError> {
        // Whoever waits for the outcome has its sync; whoever does not has this one.
        let (ack, ends) =
            if send.at_once { (Ack::Synced, StopWhen::AtOnce) } else { (Ack::Committed, StopWhen::Resting) };
        let task_ref = self.deliver_message(caller, &send, ack).await?;
        let update = self.wait_for_update(caller, task_ref, ends).await?;
        Ok(match update {
            TaskUpdate::Begin(task) => TaskUpdate::Begin(Box::new(task.with_history_length(send.history))),
            other @ (TaskUpdate::Chunk(_)
            | TaskUpdate::Artifact(_)
            | TaskUpdate::Status(_)
            | TaskUpdate::Reply(_)
            | TaskUpdate::Said(_)) => other,
        })
    }

    /// Says something and gives everything that comes of it.
    pub(super) async fn send_streaming_message(
        &self,
        caller: &A2aCaller,
        send: SendRequest,
    ) -> Result<TaskStream, A2aError> {
        let task_ref = self.deliver_message(caller, &send, Ack::Committed).await?;
        self.open_stream(caller, task_ref, StopWhen::Resting).await
    }

    async fn deliver_message(&self, caller: &A2aCaller, send: &SendRequest, ack: Ack) -> Result<TaskRef, A2aError> {
        self.services.sessions.authorize_prompt(&caller.identity).map_err(a2a_session_error)?;
        let parts = content::a2a_prompt_parts(&send.message, &self.services.with_accepted_media(&caller.agent).takes)?;
        if let Some(config) = &send.push {
            check_push_config_of_run(&send.message, config)?;
            self.push.check_receiver(config).await?;
        }
        let sent = SentMessage::new(&send.message, parts, ack);
        let task_ref = match send.message.task_id.as_deref() {
            Some(task) => self.continue_task(caller, task, sent).await?,
            None => self.begin_task(caller, sent).await?,
        };
        if let Some(config) = send.push.clone() {
            self.push.set_config(caller, &task_ref, config, task_ref.after).await?;
        }
        Ok(task_ref)
    }

    async fn begin_task(&self, caller: &A2aCaller, sent: SentMessage<'_>) -> Result<TaskRef, A2aError> {
        let Some(name) = sent.message.context_id.as_deref() else {
            let workspace = self.named_workspace(caller, sent.message).await?;
            if slash_commands::begins_with_slash(&sent.parts) {
                let session = self.create_empty_context(caller, None, workspace).await.map_err(a2a_session_error)?;
                return self.prompt_context(caller, session, &session.to_string(), sent).await;
            }
            return self.create_context(caller, None, &sent, workspace).await.map_err(a2a_session_error);
        };
        if name.len() > MAX_CONTEXT_NAME {
            return Err(A2aError::invalid_field("message.contextId", "is too long"));
        }
        if name.chars().any(char::is_control) {
            return Err(A2aError::invalid_field("message.contextId", "has characters that nobody can see"));
        }
        let session = match self.find_open_session(&caller.identity, name).await? {
            Some(session) => session,
            None => {
                let workspace = self.named_workspace(caller, sent.message).await?;
                let created = match slash_commands::begins_with_slash(&sent.parts) {
                    true => self.create_empty_context(caller, Some(name), workspace).await,
                    false => match self.create_context(caller, Some(name), &sent, workspace).await {
                        Err(error) => Err(error),
                        begun => return begun.map_err(a2a_session_error),
                    },
                };
                match created {
                    Err(SessionError::AliasTaken(session)) => session, // just now, by another message
                    created => created.map_err(a2a_session_error)?,
                }
            }
        };
        self.prompt_context(caller, session, name, sent).await
    }

    /// One more message in a context.
    async fn prompt_context(
        &self,
        caller: &A2aCaller,
        session: SessionId,
        context: &str,
        sent: SentMessage<'_>,
    ) -> Result<TaskRef, A2aError> {
        let view = self.services.sessions.view(&caller.identity, session).await.map_err(a2a_session_error)?;
        let run = idempotent_run_id(caller, session, &sent.message.message_id);
        if self.services.hub.knows_run(session, run).await.map_err(a2a_hub_error)? {
            return self.find_repeated_task(caller, run, &sent).await;
        }
        if let Some(asking) = view.run.as_ref().filter(|run| run.blocking_question().is_some()) {
            let message = format!("this context waits for an answer first, name its task: {}", asking.id);
            return Err(A2aError::new(A2aErrorKind::UnsupportedOperation, message));
        }
        // A mode that is addressed is chosen; an agent leaves the context as it is.
        let roster = self.services.agents.roster();
        if roster.find_agent(&caller.agent.name).is_none()
            && let Some(patch) = roster.patch_for_name(&caller.agent.name, &view.settings)
        {
            self.services
                .hub
                .execute_command(&caller.identity, session, Command::Configure { patch }, Ack::Committed)
                .await
                .map_err(a2a_hub_error)?;
        }
        let meta = Some(sent.log_meta());
        let parts = prompts::prepare_prompt(&self.services, &caller.identity, session, sent.parts.clone());
        let parts = parts.await.map_err(|error| A2aError::invalid_field("message.parts", error.to_string()))?;
        let if_busy = IfBusy::Queue;
        let command = Command::Prompt { run, origin: caller.origin(), parts, if_busy, meta };
        let accepted = self
            .services
            .hub
            .execute_command(&caller.identity, session, command, sent.ack)
            .await
            .map_err(a2a_hub_error)?;
        let after = match accepted {
            Accepted::Repeated(_) => return self.find_repeated_task(caller, run, &sent).await,
            Accepted::Started(_) | Accepted::Queued(_) | Accepted::Steered(_) | Accepted::Done => view.head,
        };
        Ok(TaskRef { session, context: context.to_owned(), run, after, check_from: after.next(), newborn: None })
    }

    /// The task that this very message began.
    async fn find_repeated_task(
        &self,
        caller: &A2aCaller,
        run: RunId,
        sent: &SentMessage<'_>,
    ) -> Result<TaskRef, A2aError> {
        let (task_ref, _) = self.find_task(caller, &run.to_string()).await?;
        match self.scan_prior_messages(&task_ref, sent, task_ref.after.next()).await?.sent {
            MessageSeen::Otherwise => Err(sent.id_reused_error()),
            MessageSeen::Not | MessageSeen::Same => Ok(task_ref),
        }
    }

    /// A message about a task that is there already.
    async fn continue_task(&self, caller: &A2aCaller, id: &str, sent: SentMessage<'_>) -> Result<TaskRef, A2aError> {
        let (mut task_ref, state) = self.find_task(caller, id).await?;
        self.check_same_context(caller, &task_ref, sent.message).await?;
        let no = |why: &str| Err(A2aError::new(A2aErrorKind::UnsupportedOperation, format!("{why}: {id}")));
        let view = self.services.sessions.view(&caller.identity, task_ref.session).await.map_err(a2a_session_error)?;
        let past = self.scan_prior_messages(&task_ref, &sent, view.head).await?;
        match past.sent {
            MessageSeen::Same => return Ok(task_ref),
            MessageSeen::Otherwise => return Err(sent.id_reused_error()),
            MessageSeen::Not => {}
        }
        match state {
            RunState::Queued => return no("task waits for its turn and takes no message"),
            RunState::Ended(..) => return no("task is over and takes no message"),
            RunState::Running | RunState::Awaiting => {}
        }
        let Some(run) = view.run.as_ref().filter(|run| run.id == task_ref.run) else {
            return no("task is over and takes no message");
        };
        let command = match question::a2a_answered_question(&run.questions, sent.message) {
            None if past.repeats_answer(sent.message) => return no(ALREADY_ANSWERED),
            None if run.blocking_question().is_some() || question::a2a_question_id_in(sent.message).is_some() => {
                return Err(A2aError::invalid_field("message.metadata", format!("task does not ask this: {id}")));
            }
            None => {
                let media = prompts::check_prompt_media(&self.services, &view, &sent.parts).await;
                media.map_err(|error| A2aError::invalid_field("message.parts", error.to_string()))?;
                sent.steer_command(caller, task_ref.run)
            }
            Some(question) => sent.answer_command(caller, question)?,
        };
        self.services
            .hub
            .execute_command(&caller.identity, task_ref.session, command, sent.ack)
            .await
            .map_err(a2a_hub_error)?;
        task_ref.check_from = view.head.next();
        Ok(task_ref)
    }

    async fn check_same_context(
        &self,
        caller: &A2aCaller,
        task_ref: &TaskRef,
        message: &A2aMessage,
    ) -> Result<(), A2aError> {
        let Some(named) = message.context_id.as_deref().filter(|named| *named != task_ref.context) else {
            return Ok(());
        };
        match self.find_session(&caller.identity, named).await? {
            Some(session) if session == task_ref.session => Ok(()),
            Some(_) | None => Err(A2aError::invalid_field(
                "message.contextId",
                format!("the task is in another: {}", task_ref.context),
            )),
        }
    }

    /// The folder that a message names for its new context, if it names one that this caller may choose.
    async fn named_workspace(&self, caller: &A2aCaller, message: &A2aMessage) -> Result<SessionFolder, A2aError> {
        let named = message.metadata.as_ref().and_then(|metadata| metadata.get(WORKSPACE_METADATA));
        let Some(named) = named else { return Ok(SessionFolder::OfAgent) };
        let unusable =
            |why: String| A2aError::invalid_field("message.metadata", format!("{WORKSPACE_METADATA}: {why}"));
        let folder = named.as_str().ok_or_else(|| unusable("is not a string".to_owned()))?;
        let chosen = self.services.sessions.choose_folder(&caller.identity, folder).await;
        chosen.map(SessionFolder::Chosen).map_err(|error| unusable(error.to_string()))
    }

    /// A new context without a message: what a slash command becomes is known to its session alone.
    async fn create_empty_context(
        &self,
        caller: &A2aCaller,
        name: Option<&str>,
        workspace: SessionFolder,
    ) -> Result<SessionId, SessionError> {
        let new = self.new_context(caller, name, workspace).await?;
        Ok(self.services.sessions.create(&caller.identity, new).await?.session)
    }

    async fn new_context(
        &self,
        caller: &A2aCaller,
        name: Option<&str>,
        workspace: SessionFolder,
    ) -> Result<NewSession, SessionError> {
        let settings =
            self.services.agents.settings_for_agent(&caller.agent.name, &self.services.default_session_settings());
        let aliases = name.map(|name| a2a_context_alias(&caller.identity.principal, name)).into_iter().collect();
        let session = self.services.sessions.new_id().await?;
        let settings = settings.ok_or(HubError::Gone(session))?;
        Ok(NewSession { aliases, workspace: Some(workspace), ..NewSession::with_id(session, settings) })
    }

    /// A new context that begins with this message: one append holds both.
    async fn create_context(
        &self,
        caller: &A2aCaller,
        name: Option<&str>,
        sent: &SentMessage<'_>,
        workspace: SessionFolder,
    ) -> Result<TaskRef, SessionError> {
        let new = self.new_context(caller, name, workspace).await?;
        let session = new.id;
        let run = match name {
            Some(_) => idempotent_run_id(caller, session, &sent.message.message_id),
            None => RunId::make(&mut SystemIds),
        };
        let (parts, meta) = (sent.parts.clone(), Some(sent.log_meta()));
        let command = Command::Prompt { run, origin: caller.origin(), parts, if_busy: IfBusy::Queue, meta };
        let prompt = FirstPrompt { command, ack: sent.ack };
        let begun = self.services.sessions.create_with_prompt(&caller.identity, new, prompt).await;
        let StartedSession { view, follower, accepted } = begun.map_err(|error| {
            tracing::error!(%error, "no folder for a new context");
            HubError::Gone(session)
        })?;
        accepted.await?;
        let context = name.map_or_else(|| session.to_string(), str::to_owned);
        let after = view.head;
        Ok(TaskRef { session, context, run, after, check_from: after.next(), newborn: Some(follower) })
    }
}

/// Where updates are sent and what is said are about one task.
fn check_push_config_of_run(message: &A2aMessage, config: &PushConfig) -> Result<(), A2aError> {
    match message.task_id.as_deref() {
        Some(task) if !config.task_id.is_empty() && config.task_id != task => {
            let field = "configuration.taskPushNotificationConfig.taskId";
            Err(A2aError::invalid_field(field, "and message.taskId differ"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The same message in the same context is the same run, however often it is sent.
fn idempotent_run_id(caller: &A2aCaller, session: SessionId, message: &str) -> RunId {
    let mut hash = Sha256::new();
    for piece in [caller.identity.principal.as_str().as_bytes(), session.uuid().as_bytes(), message.as_bytes()] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    RunId::new(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}
