//! Runs: begun, found again, answered, cancelled, waited for.

use gander_domain::caller::Caller;
use gander_domain::roster::spell_as_requested;
use gander_domain::{
    Accepted, Command, CommandError, IfBusy, Message, MessageId, Part, ResetReason, RunId, Seq, SessionId, SessionView,
    Settings, SettingsPatch,
};
use gander_runtime::hub::{Ack, HubError, StartedSession};
use gander_services::request_hash::RequestHash;
use gander_services::sessions::{FirstPrompt, NewSession, SessionError, SessionFolder};
use gander_services::{prompts, slash_commands};
use gander_store::clock::SystemIds;
use gander_store::{Alias, DeltaForm, Limit, RunRow, RunState};
use gander_wire::acp_rest::types::WireTime;
use gander_wire::acp_rest::{
    AcpRestProjection, AcpRestRefusal, AcpRestRun, AcpRestRunRequest, HistoryMessage, PROTOCOL_NAME, RequestedSession,
    ResumeRequest, RunMode, RunStatus, question,
};
use gander_wire::check;
use serde_json::{Value, json};

use super::{
    AcpRest, AcpRestRunStream, BaseUrl, RunStart, acp_rest_hub_refusal, acp_rest_run_origin, acp_rest_session_refusal,
    acp_rest_store_refusal,
};

/// A prompt on its way to a session.
struct PendingPrompt {
    run: RunId,
    agent: String,
    command: Command,
    ack: Ack,
    base: BaseUrl,
}

impl PendingPrompt {
    fn parts(&self) -> &[Part] {
        if let Command::Prompt { parts, .. } = &self.command { parts } else { &[] }
    }
}

/// A client's own id for a run, and the request that it stands for.
struct IdempotencyKey {
    run: RunId,
    hash: RequestHash,
    session: Option<SessionId>,
}

/// What a client says about a new session: its name and that of its first run, and where it works.
struct SessionChoices<'a> {
    session: Option<SessionId>,
    run: Option<&'a IdempotencyKey>,
    workspace: SessionFolder,
}

impl SessionChoices<'_> {
    /// The run's id is an alias too, so that of two requests at once with the same id only one makes a session.
    fn aliases(&self, acp_rest: &AcpRest, caller: &Caller) -> Vec<Alias> {
        let session = self.session.map(|name| acp_rest.session_alias(caller, name));
        let run = self.run.map(|key| Alias {
            principal: caller.principal.clone(),
            door: PROTOCOL_NAME.to_owned(),
            namespace: "run".to_owned(),
            text: key.run.to_string(),
        });
        session.into_iter().chain(run).collect()
    }
}

impl AcpRest {
    /// Begins a run, or finds the one that the client began before under this id. A session that is new works in the
    /// folder that is named, if the caller may choose it, or in its agent's.
    pub async fn begin_run(
        &self,
        caller: &Caller,
        base: BaseUrl,
        new: AcpRestRunRequest,
        workspace: Option<String>,
    ) -> Result<AcpRestRunStream, AcpRestRefusal> {
        let unknown = || AcpRestRefusal::not_found(format!("no such agent: {}", new.agent));
        let settings = self.services.agents.settings_for_agent(&new.agent, &self.services.default_session_settings());
        let (settings, named) = settings.zip(self.services.agents.manifest(&new.agent)).ok_or_else(unknown)?;
        let takes = self.services.with_accepted_media(&named).takes;
        for part in &new.parts {
            check::check_media_for(part, &takes).map_err(|error| AcpRestRefusal::unreadable(error.to_string()))?;
        }
        let new = AcpRestRunRequest { agent: spell_as_requested(&named.name, &new.agent), ..new };
        let hash = run_request_hash(&new);
        let key = new.run.map(|run| IdempotencyKey { run, hash: hash.clone(), session: run_session_id(&new.session) });
        if let Some(key) = &key
            && let Some(known) = self.find_repeated_run(caller, &base, key).await?
        {
            return Ok(known);
        }
        let AcpRestRunRequest { agent, before, parts, times, mode, session: requested, run } = new;
        let (session, name, history) = match requested {
            RequestedSession::New => (None, None, Vec::new()),
            RequestedSession::Named(id) => (self.find_session(caller, id).await?, Some(id), Vec::new()),
            RequestedSession::Described(id, history) => (self.find_session(caller, id).await?, Some(id), history),
        };
        let run = run.unwrap_or_else(|| RunId::make(&mut SystemIds));
        let alias = name.filter(|name| session.as_ref().is_none_or(|view| view.session != *name));
        let meta = hash.add_to_meta(Some(run_meta(&agent, alias, times)));
        let origin = acp_rest_run_origin(caller);
        let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Queue, meta: Some(meta) };
        // Whoever is told before the end is told what would survive a power cut.
        let ack = if mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        let prompt = PendingPrompt { run, agent, command, ack, base: base.clone() };
        let history = self.import_history(session.as_ref(), &history).await?;
        let before: Vec<HistoryMessage> = history.unwrap_or_default().into_iter().chain(before).collect();
        let begun = match session {
            Some(view) => self.continue_session(caller, view, before, prompt).await?,
            None => {
                let workspace = workspace.map_or(SessionFolder::OfAgent, SessionFolder::Chosen);
                let choices = SessionChoices { session: name, run: key.as_ref(), workspace };
                self.start_in_new_session(caller, choices, settings, before, prompt).await?
            }
        };
        let Some(key) = key.filter(|_| begun.is_none()) else {
            return begun.ok_or_else(|| acp_rest_hub_refusal(&HubError::Refused(CommandError::NoSuchRun(run))));
        };
        let known = self.find_repeated_run(caller, &base, &key).await?;
        known
            .ok_or_else(|| AcpRestRefusal::wrong_state(format!("another request with this run id is under way: {run}")))
    }

    /// A new session, with its first prompt in the same append if nothing comes before it.
    async fn start_in_new_session(
        &self,
        caller: &Caller,
        choices: SessionChoices<'_>,
        settings: Settings,
        before: Vec<HistoryMessage>,
        prompt: PendingPrompt,
    ) -> Result<Option<AcpRestRunStream>, AcpRestRefusal> {
        let aliases = choices.aliases(self, caller);
        let session = self.services.sessions.new_id().await.map_err(acp_rest_session_refusal)?;
        let new = NewSession { aliases, workspace: Some(choices.workspace), ..NewSession::with_id(session, settings) };
        // What a slash command becomes is known to its session alone.
        let at_once = before.is_empty() && !slash_commands::begins_with_slash(prompt.parts());
        let taken = match at_once {
            false => match self.services.sessions.create(caller, new).await {
                Ok(view) => return self.continue_session(caller, view, before, prompt).await,
                Err(SessionError::AliasTaken(taken)) => taken,
                Err(error) => return Err(acp_rest_session_refusal(error)),
            },
            true => {
                let PendingPrompt { run, agent, command, ack, base } = &prompt;
                let first = FirstPrompt { command: command.clone(), ack: *ack };
                let begun = self.services.sessions.create_with_prompt(caller, new, first).await;
                let StartedSession { follower, accepted, .. } = begun.map_err(acp_rest_session_refusal)?;
                match accepted.await.map_err(SessionError::from) {
                    Ok(_) => {
                        let projection = AcpRestProjection::new(session, agent, *run)
                            .with_artifacts_url(base.artifacts_url(session));
                        return Ok(Some(AcpRestRunStream::from_start(projection, follower, session, Seq::ZERO)));
                    }
                    Err(SessionError::AliasTaken(taken)) => taken,
                    Err(error) => return Err(acp_rest_session_refusal(error)),
                }
            }
        };
        // Another request made it just now: under this name it is the same session, under this run id the same run.
        let view = self.services.sessions.view(caller, taken).await.map_err(acp_rest_session_refusal)?;
        if view.has_seen_run(prompt.run) { Ok(None) } else { self.continue_session(caller, view, before, prompt).await }
    }

    /// The prompt with what its slash command says in place of it, if it is one.
    async fn expand_command(
        &self,
        caller: &Caller,
        session: SessionId,
        mut prompt: PendingPrompt,
    ) -> Result<PendingPrompt, AcpRestRefusal> {
        if let Command::Prompt { parts, .. } = &mut prompt.command {
            let typed = std::mem::take(parts);
            *parts = prompts::prepare_prompt(&self.services, caller, session, typed)
                .await
                .map_err(|error| AcpRestRefusal::unreadable(error.to_string()))?;
        }
        Ok(prompt)
    }

    /// A session that is there, set to the agent that is asked for. `None` if the run was begun before.
    async fn continue_session(
        &self,
        caller: &Caller,
        view: SessionView,
        before: Vec<HistoryMessage>,
        prompt: PendingPrompt,
    ) -> Result<Option<AcpRestRunStream>, AcpRestRefusal> {
        let session = view.session;
        let patch = self.services.agents.roster().patch_for_name(&prompt.agent, &view.settings).unwrap_or_default();
        let changes = patch != SettingsPatch::default();
        if let Some(active) = &view.run {
            if active.is_awaiting() {
                return Err(acp_rest_hub_refusal(&CommandError::RunAwaiting(active.id).into()));
            }
            if changes {
                let busy = format!("session is busy with another agent, run: {}", active.id);
                return Err(AcpRestRefusal::wrong_state(busy));
            }
        }
        if !before.is_empty() {
            self.send_command(caller, session, acp_rest_reset_history_command(before)).await?;
        }
        if changes {
            self.send_command(caller, session, Command::Configure { patch }).await?;
        }
        let follower = self.services.hub.follow_live(session, view.head);
        let PendingPrompt { run, agent, command, ack, base } = self.expand_command(caller, session, prompt).await?;
        let accepted = self
            .services
            .hub
            .execute_command(caller, session, command, ack)
            .await
            .map_err(|error| acp_rest_hub_refusal(&error))?;
        match accepted {
            Accepted::Repeated(_) => return Ok(None),
            Accepted::Started(_) | Accepted::Queued(_) | Accepted::Steered(_) | Accepted::Done => {}
        }
        let projection = AcpRestProjection::new(session, &agent, run).with_artifacts_url(base.artifacts_url(session));
        Ok(Some(AcpRestRunStream::from_start(projection, follower, session, view.head)))
    }

    /// The run that the same request began, read from its beginning, if there is one. Nobody finds another's.
    async fn find_repeated_run(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        key: &IdempotencyKey,
    ) -> Result<Option<AcpRestRunStream>, AcpRestRefusal> {
        let IdempotencyKey { run, hash, session } = key;
        let row = self.services.sessions.find_run(caller, *run).await.map_err(acp_rest_session_refusal)?;
        let Some(row) = row else { return Ok(None) };
        let projection = self.load_projection(caller, base, &row).await;
        let projection = projection.map_err(|_| AcpRestRefusal::wrong_state(format!("run id is taken: {run}")))?;
        let elsewhere = match session {
            Some(id) => self.find_session(caller, *id).await?.is_none_or(|view| view.session != row.session),
            None => false,
        };
        if elsewhere || !hash.started_run(&**self.services.hub.store(), &row).await.map_err(acp_rest_store_refusal)? {
            return Err(AcpRestRefusal::run_id_reused(format!(
                "run id was used for another request, choose a new one: {run}"
            )));
        }
        let after = seq_before_run(row.first);
        let follower = self.services.hub.follow_session(row.session, after, DeltaForm::Exact);
        Ok(Some(AcpRestRunStream::from_start(projection, follower, row.session, after)))
    }

    /// A run from its beginning.
    pub async fn open_run(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        run: RunId,
    ) -> Result<AcpRestRunStream, AcpRestRefusal> {
        let row = self.find_run_row(caller, run).await?;
        self.subscribe_from_start(caller, base, row).await
    }

    async fn subscribe_from_start(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        row: RunRow,
    ) -> Result<AcpRestRunStream, AcpRestRefusal> {
        let projection = self.load_projection(caller, base, &row).await?;
        let follower = self.services.hub.follow_session(row.session, seq_before_run(row.first), DeltaForm::Exact);
        Ok(AcpRestRunStream::from_start(projection, follower, row.session, seq_before_run(row.first)))
    }

    /// A run as it is now.
    pub async fn find_run(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        run: RunId,
    ) -> Result<AcpRestProjection, AcpRestRefusal> {
        let row = self.find_run_row(caller, run).await?;
        let mut projection = self.load_projection(caller, base, &row).await?;
        self.read_run_entries(&row, DeltaForm::Joined, |entry| projection.handle_entry(entry)).await?;
        Ok(projection)
    }

    /// A run whose events are listed, and the last entry of it that there will be.
    pub async fn run_events(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        run: RunId,
    ) -> Result<(AcpRestRunStream, Seq), AcpRestRefusal> {
        let row = self.find_run_row(caller, run).await?;
        let end = last_run_seq(&row);
        Ok((self.subscribe_from_start(caller, base, row).await?, end))
    }

    /// Answers what a run awaits. Of two answers one is taken.
    pub async fn resume_run(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        run: RunId,
        resume: &ResumeRequest,
    ) -> Result<AcpRestRunStream, AcpRestRefusal> {
        let row = self.find_run_row(caller, run).await?;
        let begin =
            RunStart { unread: self.load_projection(caller, base, &row).await?, after: seq_before_run(row.first) };
        let mut projection = begin.unread.clone();
        if let Some(id) = resume.session
            && self.find_session(caller, id).await?.is_none_or(|view| view.session != row.session)
        {
            return Err(AcpRestRefusal::ids_disagree(format!("the run is in another session than session_id: {id}")));
        }
        let position = self.read_run_entries(&row, DeltaForm::Joined, |entry| projection.handle_entry(entry)).await?;
        let awaited = projection.question().filter(|_| projection.run().status == RunStatus::Awaiting);
        let Some(asked) = awaited else {
            return Err(AcpRestRefusal::wrong_state(format!("run awaits nothing: {run}")));
        };
        if question::acp_rest_question_id_in(&resume.message).is_some_and(|named| named != asked.id.to_string()) {
            return Err(AcpRestRefusal::wrong_state(format!("run does not await an answer to this question: {run}")));
        }
        let (question, reply) = (asked.id, question::read_acp_rest_reply(asked, &resume.message)?);
        let follower = self.services.hub.follow_live(row.session, position);
        let command = Command::Answer { question, reply, origin: acp_rest_run_origin(caller), meta: None };
        let ack = if resume.mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        self.services
            .hub
            .execute_command(caller, row.session, command, ack)
            .await
            .map_err(|error| acp_rest_hub_refusal(&error))?;
        Ok(AcpRestRunStream { projection, follower, answered: Some(question), session: row.session, begin })
    }

    /// Cancels a run: it is told to be cancelling, though it may be over already.
    pub async fn cancel_run(&self, caller: &Caller, base: &BaseUrl, run: RunId) -> Result<AcpRestRun, AcpRestRefusal> {
        let row = self.find_run_row(caller, run).await?;
        let mut projection = self.load_projection(caller, base, &row).await?;
        self.read_run_entries(&row, DeltaForm::Joined, |entry| projection.handle_entry(entry)).await?;
        let over = || AcpRestRefusal::wrong_state(format!("run is over and cannot be cancelled: {run}"));
        if projection.run().status.is_terminal() {
            return Err(over());
        }
        let command = Command::Cancel { run: Some(run), origin: acp_rest_run_origin(caller) };
        match self.services.hub.execute_command(caller, row.session, command, Ack::Synced).await {
            Ok(_) => Ok(AcpRestRun { status: RunStatus::Cancelling, finished_at: None, ..projection.into_run() }),
            Err(HubError::Refused(CommandError::NoSuchRun(_))) => Err(over()),
            Err(error) => Err(acp_rest_hub_refusal(&error)),
        }
    }

    /// Where a run is, for somebody who may see it.
    async fn load_projection(
        &self,
        caller: &Caller,
        base: &BaseUrl,
        row: &RunRow,
    ) -> Result<AcpRestProjection, AcpRestRefusal> {
        let summary = self.services.sessions.find(caller, row.session).await.map_err(acp_rest_session_refusal)?;
        Ok(AcpRestProjection::new(row.session, &summary.agent, row.run)
            .with_artifacts_url(base.artifacts_url(row.session)))
    }

    async fn find_run_row(&self, caller: &Caller, run: RunId) -> Result<RunRow, AcpRestRefusal> {
        let row = self.services.sessions.find_run(caller, run).await.map_err(acp_rest_session_refusal)?;
        row.ok_or_else(|| no_such_acp_rest_run(run))
    }

    /// Reads a run's entries; gives the place of the last one.
    async fn read_run_entries(
        &self,
        row: &RunRow,
        form: DeltaForm,
        mut take: impl FnMut(&gander_domain::Entry),
    ) -> Result<Seq, AcpRestRefusal> {
        let end = last_run_seq(row);
        let mut position = seq_before_run(row.first);
        while position < end {
            let page = self
                .services
                .hub
                .store()
                .read(row.session, position, Limit::default(), form)
                .await
                .map_err(acp_rest_store_refusal)?;
            let Some(last) = page.last() else { break };
            position = last.seq;
            page.iter().take_while(|entry| entry.seq <= end).for_each(&mut take);
        }
        Ok(position)
    }

    async fn send_command(&self, caller: &Caller, session: SessionId, command: Command) -> Result<(), AcpRestRefusal> {
        let done = self.services.hub.execute_command(caller, session, command, Ack::Committed).await;
        done.map(|_| ()).map_err(|error| acp_rest_hub_refusal(&error))
    }
}

/// How the client hears of a run and which addresses its history has do not make it another request.
fn run_request_hash(new: &AcpRestRunRequest) -> RequestHash {
    let before: Vec<_> = new.before.iter().map(|HistoryMessage { role, parts }| (role, parts)).collect();
    RequestHash::new(&(PROTOCOL_NAME, &new.agent, before, &new.parts, run_session_id(&new.session)))
}

fn run_session_id(requested: &RequestedSession) -> Option<SessionId> {
    match requested {
        RequestedSession::New => None,
        RequestedSession::Named(id) | RequestedSession::Described(id, _) => Some(*id),
    }
}

fn no_such_acp_rest_run(run: RunId) -> AcpRestRefusal {
    AcpRestRefusal::not_found(format!("no such run: {run}"))
}

fn last_run_seq(row: &RunRow) -> Seq {
    match row.state {
        RunState::Ended(end, _) => end,
        RunState::Queued | RunState::Running | RunState::Awaiting => Seq(u64::MAX),
    }
}

fn seq_before_run(first: Seq) -> Seq {
    Seq(first.0.saturating_sub(1))
}

/// What this protocol keeps in the log for itself: who was asked for, how the client calls the session, and its own times.
fn run_meta(agent: &str, name: Option<SessionId>, times: Option<[WireTime; 2]>) -> Value {
    let mut note = json!({ "agent": agent });
    if let Some(name) = name {
        note["session"] = json!(name);
    }
    if let Some(times) = times {
        note["times"] = json!(times);
    }
    json!({ PROTOCOL_NAME: note })
}

fn acp_rest_reset_history_command(lines: Vec<HistoryMessage>) -> Command {
    let message = |HistoryMessage { role, parts }| Message {
        id: MessageId::make(&mut SystemIds),
        role,
        parts,
        interrupted: false,
        native: None,
    };
    let replacement = lines.into_iter().map(message).collect();
    Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced }
}
