//! Prompts of goose clients: begun, cancelled, and what they wait for answered.

use gander_domain::{
    Accepted, ChoiceKind, Command, IfBusy, Part, Question, Reply, ResetReason, RunId, RunOrigin, Seq, SessionId,
    SessionView, SettingsPatch,
};
use gander_wire::acp::Refusal;
use gander_wire::goose::input::{self, BadMessage};
use serde_json::Value;

use super::sessions;
use crate::app::Peer;
use crate::backend::Lent;
use crate::clock::SystemIds;
use crate::door::Desk;
use crate::door::acp::refusal;
use crate::hub::Ack;
use crate::recipes;

/// The name of this door in the log.
pub const DOOR: &str = "goose";

/// A prompt as any version of goose's clients sends it.
#[derive(Debug)]
pub struct Ask {
    /// In which session.
    pub session: SessionId,
    /// Chosen by the client or made for it.
    pub run: RunId,
    /// The message.
    pub message: Value,
    /// A history in place of the session's own.
    pub history: Option<Vec<Value>>,
    /// How the agent works from now on.
    pub mode: Option<String>,
    /// What to do if a run is under way.
    pub if_busy: IfBusy,
}

/// What became of a prompt.
#[derive(Debug)]
pub enum Asked {
    /// Its run is told by the log after this place; this is the session there.
    Begun { view: Box<SessionView>, accepted: Accepted },
    /// It was an answer, or a command that is carried out.
    Done,
}

/// Why a prompt or an answer is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// The session or the server says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The message cannot be read.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// It answers what nobody asked, or what was answered.
    #[error("nothing waits for an answer under this id: {0}")]
    NoQuestion(String),
    /// It is no way to answer.
    #[error("no such action: {0}")]
    BadAction(String),
}

/// Carries out a prompt.
pub async fn ask(desk: &Desk, peer: &Peer, ask: Ask) -> Result<Asked, Wrong> {
    let Ask { session, run, message, history, mode, if_busy } = ask;
    let view = sessions::own(desk, peer, session).await?;
    let prompt = input::prompt(&message)?;
    for (id, content) in &prompt.answers {
        let question = open_question(&view, id).ok_or_else(|| no_question(id))?;
        let reply = if content.is_null() { Reply::Declined } else { Reply::Filled { content: content.clone() } };
        command(desk, session, answer(peer, question, reply)).await?;
    }
    if prompt.parts.is_empty() {
        return Ok(Asked::Done);
    }
    if is_clear(&prompt.parts) {
        command(desk, session, cleared()).await?;
        return Ok(Asked::Done);
    }
    if let Some(history) = history {
        command(desk, session, replaced(&history)?).await?;
    }
    if let Some(patch) = mode.and_then(|mode| known_mode(desk, &view, &mode)) {
        command(desk, session, Command::Configure { patch }).await?;
    }
    let parts = recipes::expanded(&desk.recipes, &peer.principal, &view.workspace, prompt.parts).await?;
    let view = desk.hub.stored_view(session).await.map_err(|error| refusal(session, &error))?;
    let command = Command::Prompt { run, origin: origin(peer), parts, if_busy, meta: None };
    let accepted = desk.hub.submit(session, command, Ack::Committed, Lent::default()).await.await;
    let accepted = accepted.map_err(|error| refusal(session, &error))?;
    Ok(Asked::Begun { view: Box::new(view), accepted })
}

/// Stops a run, or whatever runs.
pub async fn cancel(desk: &Desk, peer: &Peer, session: SessionId, run: Option<RunId>) -> Result<(), Refusal> {
    sessions::own(desk, peer, session).await?;
    command(desk, session, Command::Cancel { run, origin: origin(peer) }).await
}

/// Answers a question about a tool. Its id is the tool call's or its own.
pub async fn confirm(desk: &Desk, peer: &Peer, session: SessionId, id: &str, action: &str) -> Result<(), Wrong> {
    let view = sessions::own(desk, peer, session).await?;
    let question = open_question(&view, id).ok_or_else(|| no_question(id))?;
    let reply = chosen(question, action).ok_or_else(|| Wrong::BadAction(action.to_owned()))?;
    Ok(command(desk, session, answer(peer, question, reply)).await?)
}

/// An empty history: what was said before stays in the log.
pub fn cleared() -> Command {
    Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared }
}

/// Carries out a command that nobody needs to hear more of.
pub async fn command(desk: &Desk, session: SessionId, command: Command) -> Result<(), Refusal> {
    let done = desk.hub.command(session, command, Ack::Synced).await;
    done.map(drop).map_err(|error| refusal(session, &error))
}

fn replaced(history: &[Value]) -> Result<Command, BadMessage> {
    let replacement = input::conversation(history, &mut SystemIds)?;
    Ok(Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced })
}

fn origin(peer: &Peer) -> RunOrigin {
    RunOrigin { by: peer.principal.clone(), door: DOOR.to_owned() }
}

fn answer(peer: &Peer, question: &Question, reply: Reply) -> Command {
    Command::Answer { question: question.id, reply, origin: origin(peer), meta: None }
}

fn open_question<'a>(view: &'a SessionView, id: &str) -> Option<&'a Question> {
    let mut questions = view.run.as_ref()?.questions.iter();
    questions.find(|open| open.id.to_string() == id || open.call.is_some_and(|call| call.to_string() == id))
}

fn no_question(id: &str) -> Wrong {
    Wrong::NoQuestion(id[..id.floor_char_boundary(64)].to_owned())
}

/// The choice that an action means; what a question does not offer for good is chosen for once.
fn chosen(question: &Question, action: &str) -> Option<Reply> {
    let kinds: &[ChoiceKind] = match action {
        "always_allow" => &[ChoiceKind::AllowAlways, ChoiceKind::AllowOnce],
        "allow_once" => &[ChoiceKind::AllowOnce],
        "deny_once" | "deny" => &[ChoiceKind::RejectOnce],
        "always_deny" => &[ChoiceKind::RejectAlways, ChoiceKind::RejectOnce],
        "cancel" => return Some(Reply::Cancelled),
        _ => return None,
    };
    let gander_domain::Ask::Choose { choices } = &question.ask else { return Some(Reply::Declined) };
    let choice = kinds.iter().find_map(|kind| choices.iter().find(|choice| choice.kind == *kind))?;
    Some(Reply::Chosen { choice: choice.id.clone(), kind: choice.kind })
}

fn is_clear(parts: &[Part]) -> bool {
    matches!(parts, [Part::Text { text }] if text.trim() == "/clear")
}

/// `plan` is what a branch of goose called it.
fn known_mode(desk: &Desk, view: &SessionView, mode: &str) -> Option<SettingsPatch> {
    let mode = if mode == "plan" { "planner" } else { mode };
    desk.agents.roster_in(&view.workspace).choose(mode, &view.settings)
}
