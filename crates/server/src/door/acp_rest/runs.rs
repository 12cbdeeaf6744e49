//! Runs: begun, found again, answered, cancelled, waited for.

use gander_domain::roster::spelled;
use gander_domain::{
    Command, CommandError, IfBusy, Message, MessageId, ResetReason, RunId, Seq, SessionId, SessionView, Settings,
    SettingsPatch,
};
use gander_wire::acp_rest::types::Time;
use gander_wire::acp_rest::{
    DOOR, Line, NewRun, Place, Refusal, Resume, Run, RunMode, RunReading, RunStatus, question,
};
use serde_json::{Value, json};

use super::{AcpRest, Base, Watched, failed, origin, refusal};
use crate::backend::Lent;
use crate::clock::SystemIds;
use crate::hub::{Ack, Batch, Begun, HubError};
use crate::log::{Alias, Form, Limit, RunRow, RunState};
use crate::token::Identity;

/// A prompt on its way to a session.
struct Prompt {
    run: RunId,
    agent: String,
    command: Command,
    ack: Ack,
    base: Base,
}

impl AcpRest {
    /// Begins a run, or finds the one that the client began before under this id.
    pub async fn begin(&self, identity: &Identity, base: Base, new: NewRun) -> Result<Watched, Refusal> {
        let unknown = || Refusal::not_found(format!("no such agent: {}", new.agent));
        let settings = self.desk.agents.settings(&new.agent, &self.desk.settings);
        let (settings, named) = settings.zip(self.desk.agents.manifest(&new.agent)).ok_or_else(unknown)?;
        let new = NewRun { agent: spelled(&named.name, &new.agent), ..new };
        if let Some(run) = new.run
            && let Some(known) = self.repeated(identity, &base, run).await?
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
        let meta = note(&agent, alias, times);
        let origin = origin(identity);
        let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Queue, meta: Some(meta) };
        // Whoever is told before the end is told what would survive a power cut.
        let ack = if mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        let prompt = Prompt { run, agent, command, ack, base };
        let history = self.history(session.as_ref(), &history).await?;
        let before: Vec<Line> = history.unwrap_or_default().into_iter().chain(before).collect();
        match session {
            Some(view) => self.go_on(view, before, prompt).await,
            None => self.start(identity, name, settings, before, prompt).await,
        }
    }

    /// A new session, with its first prompt in the same append if nothing comes before it.
    async fn start(
        &self,
        identity: &Identity,
        name: Option<SessionId>,
        settings: Settings,
        before: Vec<Line>,
        prompt: Prompt,
    ) -> Result<Watched, Refusal> {
        let session = SessionId::make(&mut SystemIds);
        let workspace = self.desk.workspaces.private(session);
        let workspace = workspace.map_err(|error| Refusal::unreadable(format!("workspace {error}")))?;
        let owner = identity.principal.clone();
        let birth =
            gander_domain::Birth { session, owner, workspace, folders: Vec::new(), settings, parent: None, meta: None };
        let aliases: Vec<Alias> = name.map(|name| self.alias(identity, name)).into_iter().collect();
        if !before.is_empty() {
            let view = self.desk.hub.create(birth, aliases).await.map_err(|error| refusal(&error))?;
            return self.go_on(view, before, prompt).await;
        }
        let Prompt { run, agent, command, ack, base } = prompt;
        let Begun { follower, accepted, .. } = self.desk.hub.begin(birth, aliases, command, ack, Lent::default()).await;
        accepted.await.map_err(|error| refusal(&error))?;
        let reading = RunReading::new(session, &agent, run).with_shelf(base.shelf(session));
        Ok(Watched { reading, follower, answered: None, session })
    }

    /// A session that is there, set to the agent that is asked for.
    async fn go_on(&self, view: SessionView, before: Vec<Line>, prompt: Prompt) -> Result<Watched, Refusal> {
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
            self.carry_out(session, replacement(before)).await?;
        }
        if changes {
            self.carry_out(session, Command::Configure { patch }).await?;
        }
        let follower = self.desk.hub.follow_live(session, view.head);
        let Prompt { run, agent, command, ack, base } = prompt;
        self.desk.hub.command(session, command, ack).await.map_err(|error| refusal(&error))?;
        let reading = RunReading::new(session, &agent, run).with_shelf(base.shelf(session));
        Ok(Watched { reading, follower, answered: None, session })
    }

    /// The run of this id, read from its beginning, if there is one already. Nobody finds another's.
    async fn repeated(&self, identity: &Identity, base: &Base, run: RunId) -> Result<Option<Watched>, Refusal> {
        let Some(row) = self.desk.hub.store().run(run).await.map_err(failed)? else { return Ok(None) };
        let watched = self.watch(identity, base, row).await;
        watched.map(Some).map_err(|_| Refusal::wrong_state(format!("run id is taken: {run}")))
    }

    /// A run from its beginning.
    pub async fn open(&self, identity: &Identity, base: &Base, run: RunId) -> Result<Watched, Refusal> {
        let row = self.row(run).await?;
        self.watch(identity, base, row).await
    }

    async fn watch(&self, identity: &Identity, base: &Base, row: RunRow) -> Result<Watched, Refusal> {
        let reading = self.unread(identity, base, &row).await?;
        let follower = self.desk.hub.follow(row.session, before(row.first), Form::Exact);
        Ok(Watched { reading, follower, answered: None, session: row.session })
    }

    /// A run as it is now.
    pub async fn find(&self, identity: &Identity, base: &Base, run: RunId) -> Result<RunReading, Refusal> {
        let row = self.row(run).await?;
        let mut reading = self.unread(identity, base, &row).await?;
        self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        Ok(reading)
    }

    /// All events of a run so far.
    pub async fn events(&self, identity: &Identity, base: &Base, run: RunId) -> Result<Vec<Value>, Refusal> {
        let row = self.row(run).await?;
        let (mut reading, mut events) = (self.unread(identity, base, &row).await?, Vec::new());
        self.read(&row, Form::Exact, |entry| reading.tell(entry, &mut |event| events.push(json!(event)))).await?;
        Ok(events)
    }

    /// Answers what a run awaits. Of two answers one is taken.
    pub async fn resume(
        &self,
        identity: &Identity,
        base: &Base,
        run: RunId,
        resume: &Resume,
    ) -> Result<Watched, Refusal> {
        let row = self.row(run).await?;
        let mut reading = self.unread(identity, base, &row).await?;
        let place = self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        let awaited = reading.question().filter(|_| reading.run().status == RunStatus::Awaiting);
        let Some(asked) = awaited else {
            return Err(Refusal::wrong_state(format!("run awaits nothing: {run}")));
        };
        let (question, reply) = (asked.id, question::reply(asked, &resume.message)?);
        let follower = self.desk.hub.follow_live(row.session, place);
        let command = Command::Answer { question, reply, origin: origin(identity), meta: None };
        let ack = if resume.mode == RunMode::Sync { Ack::Committed } else { Ack::Synced };
        self.desk.hub.command(row.session, command, ack).await.map_err(|error| refusal(&error))?;
        Ok(Watched { reading, follower, answered: Some(question), session: row.session })
    }

    /// Cancels a run: it is told to be cancelling, though it may be over already.
    pub async fn cancel(&self, identity: &Identity, base: &Base, run: RunId) -> Result<Run, Refusal> {
        let row = self.row(run).await?;
        let mut reading = self.unread(identity, base, &row).await?;
        self.read(&row, Form::Joined, |entry| reading.take(entry)).await?;
        let over = || Refusal::wrong_state(format!("run is over and cannot be cancelled: {run}"));
        if reading.run().status.is_terminal() {
            return Err(over());
        }
        let command = Command::Cancel { run: Some(run), origin: origin(identity) };
        match self.desk.hub.command(row.session, command, Ack::Synced).await {
            Ok(_) => Ok(Run { status: RunStatus::Cancelling, finished_at: None, ..reading.into_run() }),
            Err(HubError::Refused(CommandError::NoSuchRun(_))) => Err(over()),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Where a run is, for somebody who may see it.
    async fn unread(&self, identity: &Identity, base: &Base, row: &RunRow) -> Result<RunReading, Refusal> {
        let card = self.desk.hub.store().card(row.session).await.map_err(failed)?;
        if card.owner != identity.principal {
            return Err(no_such_run(row.run));
        }
        Ok(RunReading::new(row.session, &card.agent, row.run).with_shelf(base.shelf(row.session)))
    }

    async fn row(&self, run: RunId) -> Result<RunRow, Refusal> {
        self.desk.hub.store().run(run).await.map_err(failed)?.ok_or_else(|| no_such_run(run))
    }

    /// Reads a run's entries; gives the place of the last one.
    async fn read(
        &self,
        row: &RunRow,
        form: Form,
        mut take: impl FnMut(&gander_domain::Entry),
    ) -> Result<Seq, Refusal> {
        let end = match row.state {
            RunState::Ended(end, _) => end,
            RunState::Queued | RunState::Running | RunState::Awaiting => Seq(u64::MAX),
        };
        let mut place = before(row.first);
        while place < end {
            let page = self.desk.hub.store().read(row.session, place, Limit::default(), form).await.map_err(failed)?;
            let Some(last) = page.last() else { break };
            place = last.seq;
            page.iter().take_while(|entry| entry.seq <= end).for_each(&mut take);
        }
        Ok(place)
    }

    async fn carry_out(&self, session: SessionId, command: Command) -> Result<(), Refusal> {
        let done = self.desk.hub.command(session, command, Ack::Committed).await;
        done.map(|_| ()).map_err(|error| refusal(&error))
    }
}

impl Watched {
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

fn no_such_run(run: RunId) -> Refusal {
    Refusal::not_found(format!("no such run: {run}"))
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
