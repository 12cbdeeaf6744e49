//! Runs: begun, found again, answered, cancelled, waited for.

use gander_domain::caller::Caller;
use gander_domain::roster::spelled;
use gander_domain::{
    Accepted, Command, CommandError, IfBusy, Message, MessageId, ResetReason, RunId, Seq, SessionId, SessionView,
    Settings, SettingsPatch,
};
use gander_runtime::backend::Lent;
use gander_runtime::hub::{Ack, Batch, Begun, Follower, HubError};
use gander_services::idempotency::RequestHash;
use gander_store::clock::SystemIds;
use gander_store::{Alias, Form, Limit, RunRow, RunState, StoreError};
use gander_wire::acp_rest::types::Time;
use gander_wire::acp_rest::{
    DOOR, Line, NewRun, Place, Refusal, Resume, Run, RunMode, RunReading, RunStatus, question,
};
use gander_wire::check;
use serde_json::{Value, json};

use super::{AcpRest, Base, Begin, Watched, failed, origin, refusal};

/// A prompt on its way to a session.
struct Prompt {
    run: RunId,
    agent: String,
    command: Command,
    ack: Ack,
    base: Base,
}

/// A client's own id for a run, and the request that it stands for.
struct Key {
    run: RunId,
    hash: RequestHash,
    session: Option<SessionId>,
}

/// What a client calls a new session and its first run.
struct Names<'a> {
    session: Option<SessionId>,
    run: Option<&'a Key>,
}

impl Names<'_> {
    /// The run's id is an alias too, so that of two requests at once with the same id only one makes a session.
    fn aliases(&self, door: &AcpRest, identity: &Caller) -> Vec<Alias> {
        let session = self.session.map(|name| door.alias(identity, name));
        let run = self.run.map(|key| Alias {
            principal: identity.principal.clone(),
            door: DOOR.to_owned(),
            namespace: "run".to_owned(),
            text: key.run.to_string(),
        });
        session.into_iter().chain(run).collect()
    }
}

impl AcpRest {
    /// Begins a run, or finds the one that the client began before under this id.
    pub async fn begin(&self, identity: &Caller, base: Base, new: NewRun) -> Result<Watched, Refusal> {
        let unknown = || Refusal::not_found(format!("no such agent: {}", new.agent));
        let settings = self.desk.agents.settings(&new.agent, &self.desk.settings);
        let (settings, named) = settings.zip(self.desk.agents.manifest(&new.agent)).ok_or_else(unknown)?;
        for part in &new.parts {
            check::media_for(part, &named.takes).map_err(|error| Refusal::unreadable(error.to_string()))?;
        }
        let new = NewRun { agent: spelled(&named.name, &new.agent), ..new };
        let hash = hash(&new);
        let key = new.run.map(|run| Key { run, hash: hash.clone(), session: session_of(&new.place) });
        if let Some(key) = &key
            && let Some(known) = self.repeated(identity, &base, key).await?
        {
            return Ok(known);
        }
        let NewRun { agent, before, parts, times, mode, place, run } = new;
        let (session, name, history) = match place {
            Place::New => (None, None, Vec::new()),
            Place::Named(id) => (self.session(identity, id).await?, Some(id), Vec::new()),
            Place::Described(id, history) => (self.session(identity, id).await?, Some(id), history),
        };
        let run = run.unwrap_or_else(|| RunId::make(&mut SystemIds));
        let alias = name.filter(|name| session.as_ref().is_none_or(|view| view.session != *name));
        let meta = hash.note(Some(note(&agent, alias, times)));
        let origin = origin(identity);
        let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Queue, meta: Some(meta) };
        // Whoever is told before the end is told what would survive a power cut.
        let ack = if mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        let prompt = Prompt { run, agent, command, ack, base: base.clone() };
        let history = self.history(session.as_ref(), &history).await?;
        let before: Vec<Line> = history.unwrap_or_default().into_iter().chain(before).collect();
        let begun = match session {
            Some(view) => self.go_on(identity, view, before, prompt).await?,
            None => self.start(identity, Names { session: name, run: key.as_ref() }, settings, before, prompt).await?,
        };
        match (begun, key) {
            (Some(watched), _) => Ok(watched),
            (None, Some(key)) => {
                let known = self.repeated(identity, &base, &key).await?;
                known.ok_or_else(|| {
                    Refusal::wrong_state(format!("another request with this run id is under way: {run}"))
                })
            }
            (None, None) => Err(refusal(&HubError::Refused(CommandError::NoSuchRun(run)))),
        }
    }

    /// A new session, with its first prompt in the same append if nothing comes before it.
    async fn start(
        &self,
        identity: &Caller,
        names: Names<'_>,
        settings: Settings,
        before: Vec<Line>,
        prompt: Prompt,
    ) -> Result<Option<Watched>, Refusal> {
        let session = SessionId::make(&mut SystemIds);
        let workspace = self.desk.workspaces.private(session);
        let workspace = workspace.map_err(|error| Refusal::unreadable(format!("workspace {error}")))?;
        let owner = identity.principal.clone();
        let birth =
            gander_domain::Birth { session, owner, workspace, folders: Vec::new(), settings, parent: None, meta: None };
        let aliases = names.aliases(self, identity);
        let taken = match before.is_empty() {
            false => match self.desk.hub.create(identity, birth, aliases).await {
                Ok(view) => return self.go_on(identity, view, before, prompt).await,
                Err(HubError::Store(StoreError::AliasTaken(taken))) => taken,
                Err(error) => return Err(refusal(&error)),
            },
            true => {
                let Prompt { run, agent, command, ack, base } = &prompt;
                let begun = self.desk.hub.begin(identity, birth, aliases, command.clone(), *ack, Lent::default()).await;
                let Begun { follower, accepted, .. } = begun;
                match accepted.await {
                    Ok(_) => {
                        let reading = RunReading::new(session, agent, *run).with_shelf(base.shelf(session));
                        return Ok(Some(Watched::unread(reading, follower, session, Seq::ZERO)));
                    }
                    Err(HubError::Store(StoreError::AliasTaken(taken))) => taken,
                    Err(error) => return Err(refusal(&error)),
                }
            }
        };
        // Another request made it just now: under this name it is the same session, under this run id the same run.
        let view = self.desk.hub.view(taken).await.map_err(|error| refusal(&error))?;
        if view.knows(prompt.run) { Ok(None) } else { self.go_on(identity, view, before, prompt).await }
    }

    /// A session that is there, set to the agent that is asked for. `None` if the run was begun before.
    async fn go_on(
        &self,
        identity: &Caller,
        view: SessionView,
        before: Vec<Line>,
        prompt: Prompt,
    ) -> Result<Option<Watched>, Refusal> {
        let session = view.session;
        let patch = self.desk.agents.roster().choose(&prompt.agent, &view.settings).unwrap_or_default();
        let changes = patch != SettingsPatch::default();
        if let Some(active) = &view.run {
            if active.is_awaiting() {
                return Err(refusal(&CommandError::RunAwaiting(active.id).into()));
            }
            if changes {
                let busy = format!("session is busy with another agent, run: {}", active.id);
                return Err(Refusal::wrong_state(busy));
            }
        }
        if !before.is_empty() {
            self.carry_out(identity, session, replacement(before)).await?;
        }
        if changes {
            self.carry_out(identity, session, Command::Configure { patch }).await?;
        }
        let follower = self.desk.hub.follow_live(session, view.head);
        let Prompt { run, agent, command, ack, base } = prompt;
        let accepted = self.desk.hub.command(identity, session, command, ack).await.map_err(|error| refusal(&error))?;
        match accepted {
            Accepted::Repeated(_) => return Ok(None),
            Accepted::Started(_) | Accepted::Queued(_) | Accepted::Steered(_) | Accepted::Done => {}
        }
        let reading = RunReading::new(session, &agent, run).with_shelf(base.shelf(session));
        Ok(Some(Watched::unread(reading, follower, session, view.head)))
    }

    /// The run that the same request began, read from its beginning, if there is one. Nobody finds another's.
    async fn repeated(&self, identity: &Caller, base: &Base, key: &Key) -> Result<Option<Watched>, Refusal> {
        let Key { run, hash, session } = key;
        let Some(row) = self.desk.hub.store().run_of(*run, &identity.principal).await.map_err(failed)? else {
            return Ok(None);
        };
        let reading = self.unread(identity, base, &row).await;
        let reading = reading.map_err(|_| Refusal::wrong_state(format!("run id is taken: {run}")))?;
        let elsewhere = match session {
            Some(id) => self.session(identity, *id).await?.is_none_or(|view| view.session != row.session),
            None => false,
        };
        if elsewhere || !hash.began(&**self.desk.hub.store(), &row).await.map_err(failed)? {
            return Err(Refusal::run_id_reused(format!(
                "run id was used for another request, choose a new one: {run}"
            )));
        }
        let after = before(row.first);
        let follower = self.desk.hub.follow(row.session, after, Form::Exact);
        Ok(Some(Watched::unread(reading, follower, row.session, after)))
    }

    /// A run from its beginning.
    pub async fn open(&self, identity: &Caller, base: &Base, run: RunId) -> Result<Watched, Refusal> {
        let row = self.row(identity, run).await?;
        self.watch(identity, base, row).await
    }

    async fn watch(&self, identity: &Caller, base: &Base, row: RunRow) -> Result<Watched, Refusal> {
        let reading = self.unread(identity, base, &row).await?;
        let follower = self.desk.hub.follow(row.session, before(row.first), Form::Exact);
        Ok(Watched::unread(reading, follower, row.session, before(row.first)))
    }

    /// A run as it is now.
    pub async fn find(&self, identity: &Caller, base: &Base, run: RunId) -> Result<RunReading, Refusal> {
        let row = self.row(identity, run).await?;
        let mut reading = self.unread(identity, base, &row).await?;
        self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        Ok(reading)
    }

    /// A run whose events are listed, and the last entry of it that there will be.
    pub async fn events(&self, identity: &Caller, base: &Base, run: RunId) -> Result<(Watched, Seq), Refusal> {
        let row = self.row(identity, run).await?;
        let end = end(&row);
        Ok((self.watch(identity, base, row).await?, end))
    }

    /// Answers what a run awaits. Of two answers one is taken.
    pub async fn resume(
        &self,
        identity: &Caller,
        base: &Base,
        run: RunId,
        resume: &Resume,
    ) -> Result<Watched, Refusal> {
        let row = self.row(identity, run).await?;
        let begin = Begin { unread: self.unread(identity, base, &row).await?, after: before(row.first) };
        let mut reading = begin.unread.clone();
        if let Some(id) = resume.session
            && self.session(identity, id).await?.is_none_or(|view| view.session != row.session)
        {
            return Err(Refusal::disagreement(format!("the run is in another session than session_id: {id}")));
        }
        let place = self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        let awaited = reading.question().filter(|_| reading.run().status == RunStatus::Awaiting);
        let Some(asked) = awaited else {
            return Err(Refusal::wrong_state(format!("run awaits nothing: {run}")));
        };
        if question::named(&resume.message).is_some_and(|named| named != asked.id.to_string()) {
            return Err(Refusal::wrong_state(format!("run does not await an answer to this question: {run}")));
        }
        let (question, reply) = (asked.id, question::reply(asked, &resume.message)?);
        let follower = self.desk.hub.follow_live(row.session, place);
        let command = Command::Answer { question, reply, origin: origin(identity), meta: None };
        let ack = if resume.mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        self.desk.hub.command(identity, row.session, command, ack).await.map_err(|error| refusal(&error))?;
        Ok(Watched { reading, follower, answered: Some(question), session: row.session, begin })
    }

    /// Cancels a run: it is told to be cancelling, though it may be over already.
    pub async fn cancel(&self, identity: &Caller, base: &Base, run: RunId) -> Result<Run, Refusal> {
        let row = self.row(identity, run).await?;
        let mut reading = self.unread(identity, base, &row).await?;
        self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        let over = || Refusal::wrong_state(format!("run is over and cannot be cancelled: {run}"));
        if reading.run().status.is_terminal() {
            return Err(over());
        }
        let command = Command::Cancel { run: Some(run), origin: origin(identity) };
        match self.desk.hub.command(identity, row.session, command, Ack::Synced).await {
            Ok(_) => Ok(Run { status: RunStatus::Cancelling, finished_at: None, ..reading.into_run() }),
            Err(HubError::Refused(CommandError::NoSuchRun(_))) => Err(over()),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Where a run is, for somebody who may see it.
    async fn unread(&self, identity: &Caller, base: &Base, row: &RunRow) -> Result<RunReading, Refusal> {
        let card = self.desk.hub.store().card(row.session).await.map_err(failed)?;
        if card.owner != identity.principal {
            return Err(no_such_run(row.run));
        }
        Ok(RunReading::new(row.session, &card.agent, row.run).with_shelf(base.shelf(row.session)))
    }

    async fn row(&self, identity: &Caller, run: RunId) -> Result<RunRow, Refusal> {
        let row = self.desk.hub.store().run_of(run, &identity.principal).await.map_err(failed)?;
        row.ok_or_else(|| no_such_run(run))
    }

    /// Reads a run's entries; gives the place of the last one.
    async fn read(
        &self,
        row: &RunRow,
        form: Form,
        mut take: impl FnMut(&gander_domain::Entry),
    ) -> Result<Seq, Refusal> {
        let end = end(row);
        let mut place = before(row.first);
        while place < end {
            let page = self.desk.hub.store().read(row.session, place, Limit::default(), form).await.map_err(failed)?;
            let Some(last) = page.last() else { break };
            place = last.seq;
            page.iter().take_while(|entry| entry.seq <= end).for_each(&mut take);
        }
        Ok(place)
    }

    async fn carry_out(&self, identity: &Caller, session: SessionId, command: Command) -> Result<(), Refusal> {
        let done = self.desk.hub.command(identity, session, command, Ack::Committed).await;
        done.map(|_| ()).map_err(|error| refusal(&error))
    }
}

impl Watched {
    /// Nothing of the run was read yet.
    fn unread(reading: RunReading, follower: Follower, session: SessionId, after: Seq) -> Self {
        let begin = Begin { unread: reading.clone(), after };
        Self { reading, follower, answered: None, session, begin }
    }

    /// The run once it ended or awaits.
    pub async fn settled(mut self) -> Result<Run, Refusal> {
        while !self.is_settled() {
            let batch = self.next().await?;
            for entry in batch.iter() {
                self.reading.take(entry);
                self.notice_answer();
                if self.is_settled() {
                    break;
                }
            }
        }
        Ok(self.reading.into_run())
    }

    /// The run right after it was accepted.
    pub async fn accepted(mut self) -> Result<Run, Refusal> {
        let begun = self.answered.is_none();
        loop {
            let batch = self.next().await?;
            for entry in batch.iter() {
                self.reading.take(entry);
                self.notice_answer();
                let run = self.reading.run();
                if begun && entry.run == Some(run.run_id) {
                    return Ok(Run { status: RunStatus::Created, ..self.reading.into_run() });
                }
                if !begun && self.answered.is_none() {
                    return Ok(Run { status: RunStatus::InProgress, ..self.reading.into_run() });
                }
            }
        }
    }

    async fn next(&mut self) -> Result<Batch, Refusal> {
        let gone = || refusal(&HubError::Gone(self.session));
        self.follower.next().await.map_err(failed)?.ok_or_else(gone)
    }
}

/// How the client hears of a run and which addresses its history has do not make it another request.
fn hash(new: &NewRun) -> RequestHash {
    let before: Vec<_> = new.before.iter().map(|Line { role, parts }| (role, parts)).collect();
    RequestHash::of(&(DOOR, &new.agent, before, &new.parts, session_of(&new.place)))
}

fn session_of(place: &Place) -> Option<SessionId> {
    match place {
        Place::New => None,
        Place::Named(id) | Place::Described(id, _) => Some(*id),
    }
}

fn no_such_run(run: RunId) -> Refusal {
    Refusal::not_found(format!("no such run: {run}"))
}

fn end(row: &RunRow) -> Seq {
    match row.state {
        RunState::Ended(end, _) => end,
        RunState::Queued | RunState::Running | RunState::Awaiting => Seq(u64::MAX),
    }
}

fn before(first: Seq) -> Seq {
    Seq(first.0.saturating_sub(1))
}

/// What the door wants to find again: who was asked for, how the client calls the session, and its own times.
fn note(agent: &str, name: Option<SessionId>, times: Option<[Time; 2]>) -> Value {
    let mut note = json!({ "agent": agent });
    if let Some(name) = name {
        note["session"] = json!(name);
    }
    if let Some(times) = times {
        note["times"] = json!(times);
    }
    json!({ DOOR: note })
}

fn replacement(lines: Vec<Line>) -> Command {
    let message = |Line { role, parts }| Message {
        id: MessageId::make(&mut SystemIds),
        role,
        parts,
        interrupted: false,
        native: None,
    };
    let replacement = lines.into_iter().map(message).collect();
    Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced }
}
