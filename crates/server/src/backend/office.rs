//! Sub-agents as sessions of their own: begun, followed, asked for, cancelled with the run that wants them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::delegate::{Office, People, SubEnd, SubResult, SubTask};
use gander_agent::modes::Shelf;
use gander_domain::{
    Birth, Budget, Command, Event, IfBusy, Outcome, Part, Question, Role, Roster, Routing, RunId, RunOrigin, Seq,
    SessionId, SessionView, Settings, ToolCallId,
};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::Lent;
use crate::hub::{Ack, Follower, Hub, HubError, WeakHub};
use crate::log::{Form, StoreError};

/// The door that sub-agents are prompted by. They have no sub-agents themselves.
pub const DOOR: &str = "delegate";

/// How long a sub-agent that was cancelled has to say so.
const GRACE: Duration = Duration::from_secs(4);

/// Whoever starts sub-agents for one session.
pub struct Desk {
    pub hub: WeakHub,
    pub shelf: Arc<Shelf>,
    pub parent: SessionView,
    /// What the run's own client lends is lent on.
    pub lent: Lent,
}

/// A sub-agent at work.
struct Sub<'a> {
    hub: &'a Hub,
    session: SessionId,
    run: RunId,
    origin: RunOrigin,
    people: &'a dyn People,
}

#[async_trait]
impl Office for Desk {
    fn check(&self, task: &SubTask) -> Result<(), String> {
        self.settings(task).map(drop).ok_or_else(|| format!("no such agent or mode: {}", mode(task)))
    }

    async fn run(&self, call: ToolCallId, task: &SubTask, people: &dyn People, cancel: CancellationToken) -> SubResult {
        let session = SessionId::new(derived(call, &task.name, "session"));
        let failed = |why: String| SubResult { end: SubEnd::Failed, text: why, session: session.to_string() };
        let (Some(hub), Some(settings)) = (self.hub.upgrade(), self.settings(task)) else {
            return failed("the server is stopping".to_owned());
        };
        let run = RunId::new(derived(call, &task.name, "run"));
        let origin = RunOrigin { by: self.parent.owner.clone(), door: DOOR.to_owned() };
        let sub = Sub { hub: &hub, session, run, origin, people };
        match self.begin(&sub, task, settings).await {
            Ok(follower) => sub.follow(follower, cancel).await.unwrap_or_else(|error| failed(error.to_string())),
            Err(error) => failed(error.to_string()),
        }
    }
}

impl Desk {
    /// Begins it, or finds what was begun before the process died.
    async fn begin(&self, sub: &Sub<'_>, task: &SubTask, settings: Settings) -> Result<Follower, HubError> {
        match sub.hub.view(sub.session).await {
            Ok(_) => return Ok(sub.hub.follow(sub.session, Seq::ZERO, Form::Joined)),
            Err(HubError::Store(StoreError::NotFound(_))) => {}
            Err(error) => return Err(error),
        }
        let SessionView { session: parent, owner, workspace, folders, .. } = self.parent.clone();
        let birth =
            Birth { session: sub.session, owner, workspace, folders, settings, parent: Some(parent), meta: None };
        let (run, origin, parts) = (sub.run, sub.origin.clone(), vec![Part::text(task.prompt.clone())]);
        let prompt = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None };
        let begun = sub.hub.begin(birth, Vec::new(), prompt, Ack::Committed, self.lent.clone()).await;
        begun.accepted.await?;
        Ok(begun.follower)
    }

    /// What the sub-agent is set to: never more than its parent may, nor more than is left.
    fn settings(&self, task: &SubTask) -> Option<Settings> {
        let parent = &self.parent.settings;
        let roster = Roster::new(self.shelf.library().manifests().map(Arc::new).collect());
        let way = roster.find(mode(task))?;
        let mut settings = Settings { routing: Routing::Off, ..parent.clone() };
        (settings.agent, settings.mode) = (way.agent.name.clone(), way.mode.id.clone());
        settings.model = task.model.clone().or(settings.model);
        settings.max_turns = task.max_turns.or(settings.max_turns);
        let spent = &self.parent.spent;
        let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        let tokens = left(parent.budget.tokens, spent.input + spent.output);
        settings.budget = Budget {
            tokens: task.max_tokens.into_iter().chain(tokens).min(),
            cost: left(parent.budget.cost, spent.cost),
        };
        Some(settings)
    }
}

impl Sub<'_> {
    /// Until its run has ended. Its questions are asked where its parent's people are.
    async fn follow(&self, mut follower: Follower, cancel: CancellationToken) -> Result<SubResult, HubError> {
        let (mut said, mut open): (String, Vec<Question>) = (String::new(), Vec::new());
        loop {
            let asked = async {
                match open.first() {
                    Some(question) => self.people.ask(&question.title, question.ask.clone()).await,
                    None => std::future::pending().await,
                }
            };
            let batch = tokio::select! {
                biased;
                () = cancel.cancelled() => return self.cancel(follower).await,
                batch = follower.next() => batch.map_err(HubError::from)?.ok_or(HubError::Gone(self.session))?,
                reply = asked => {
                    self.answer(open.remove(0), reply).await;
                    continue;
                }
            };
            for entry in batch.iter().filter(|entry| entry.run == Some(self.run)) {
                // The rest is for whoever reads its session.
                if let Event::MessageDone { message } = &entry.event {
                    said = if message.role == Role::Agent { message.plain_text() } else { said };
                } else if let Event::QuestionAsked { question } = &entry.event {
                    open.push(question.clone());
                } else if let Event::QuestionAnswered { question, .. } = &entry.event {
                    open.retain(|known| known.id != *question);
                } else if let Event::RunEnded { outcome } = &entry.event {
                    return Ok(self.ended(outcome, said));
                }
            }
        }
    }

    /// Somebody may have answered in the sub-agent's own session meanwhile: the first answer counts.
    async fn answer(&self, question: Question, reply: gander_domain::Reply) {
        let command = Command::Answer { question: question.id, reply, origin: self.origin.clone(), meta: None };
        if let Err(error) = self.hub.command(self.session, command, Ack::Committed).await {
            tracing::debug!(%error, "a sub-agent's question was answered elsewhere");
        }
    }

    async fn cancel(&self, mut follower: Follower) -> Result<SubResult, HubError> {
        let command = Command::Cancel { run: Some(self.run), origin: self.origin.clone() };
        if let Err(error) = self.hub.command(self.session, command, Ack::Committed).await {
            tracing::debug!(%error, "a sub-agent was over before it was cancelled");
        }
        let ended = async {
            while let Ok(Some(batch)) = follower.next().await {
                if batch.iter().any(|entry| matches!(entry.event, Event::RunEnded { .. })) {
                    return;
                }
            }
        };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!(session = %self.session, "a sub-agent takes long to end");
        }
        Ok(self.result(SubEnd::Cancelled, "cancelled".to_owned()))
    }

    fn ended(&self, outcome: &Outcome, said: String) -> SubResult {
        match outcome {
            Outcome::Completed { .. } => self.result(SubEnd::Completed, said),
            Outcome::Cancelled => self.result(SubEnd::Cancelled, said),
            Outcome::Failed { message, .. } => self.result(SubEnd::Failed, message.clone()),
        }
    }

    fn result(&self, end: SubEnd, text: String) -> SubResult {
        SubResult { end, text, session: self.session.to_string() }
    }
}

fn mode(task: &SubTask) -> &str {
    task.mode.as_deref().unwrap_or("specialist")
}

/// The same call and task are the same sub-agent, also after a crash.
fn derived(call: ToolCallId, task: &str, what: &str) -> uuid::Uuid {
    let mut hash = Sha256::new();
    for piece in [call.uuid().as_bytes(), task.as_bytes(), what.as_bytes()] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
