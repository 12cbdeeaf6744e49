//! Prompts of goose clients: begun, cancelled, and what they wait for answered.

use gander_domain::{
    Accepted, ChoiceKind, Command, IfBusy, Part, Question, Reply, ResetReason, RunId, RunOrigin, Seq, ServiceError,
    SessionId, SessionView, SettingsPatch,
};
use gander_runtime::backend::Lent;
use gander_runtime::hub::Ack;
use gander_services::errors::{refusal, unavailable};
use gander_services::idempotency::RequestHash;
use gander_services::{Services, recipes};
use gander_store::clock::SystemIds;
use gander_wire::check;
use gander_wire::goose::input::{self, BadMessage};
use serde_json::Value;

use super::sessions;
use crate::Peer;

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
    Refused(#[from] ServiceError),
    /// The message cannot be read.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// It answers what nobody asked, or what was answered.
    #[error("nothing waits for an answer under this id: {0}")]
    NoQuestion(String),
    /// Its request id stands for another request.
    #[error("request_id was used for another request, choose a new one: {0}")]
    KeyReused(RunId),
    /// It is no way to answer.
    #[error("no such action: {0}")]
    BadAction(String),
}

/// Carries out a prompt whose id the client chose: the same request again changes nothing, another one with the same id
/// is refused before any of it is carried out.
pub async fn ask_once(desk: &Services, peer: &Peer, request: Ask) -> Result<Asked, Wrong> {
    let (session, run) = (request.session, request.run);
    sessions::own(desk, peer, session).await?;
    let hash = RequestHash::of(&(DOOR, &request.message, &request.history));
    if was_asked(desk, peer, (session, run), &hash).await? {
        return Ok(Asked::Done);
    }
    let asked = carry_out(desk, peer, request, Some(hash.note(None))).await?;
    if let Asked::Begun { accepted: Accepted::Repeated(_), .. } = &asked {
        was_asked(desk, peer, (session, run), &hash).await?; // just now, by another request
    }
    Ok(asked)
}

/// Carries out a prompt.
pub async fn ask(desk: &Services, peer: &Peer, ask: Ask) -> Result<Asked, Wrong> {
    carry_out(desk, peer, ask, None).await
}

/// True if this very request began the run of this id. Another principal's id is as unknown as none.
async fn was_asked(desk: &Services, peer: &Peer, key: (SessionId, RunId), hash: &RequestHash) -> Result<bool, Wrong> {
    let (store, (session, run)) = (desk.hub.store(), key);
    let row = store.run_of(run, &peer.caller.principal).await.map_err(|error| unavailable(&error))?;
    let Some(row) = row else { return Ok(false) };
    let same = row.session == session && hash.began(&**store, &row).await.map_err(|error| unavailable(&error))?;
    if same { Ok(true) } else { Err(Wrong::KeyReused(run)) }
}

async fn carry_out(desk: &Services, peer: &Peer, ask: Ask, meta: Option<Value>) -> Result<Asked, Wrong> {
    let Ask { session, run, message, history, mode, if_busy } = ask;
    let view = sessions::own(desk, peer, session).await?;
    let prompt = input::prompt(&message)?;
    if let Some(agent) = desk.agents.roster_in(&view.workspace).named(&view.settings.agent) {
        for part in &prompt.parts {
            check::media_for(part, &agent.takes).map_err(|error| BadMessage::BadMedia(error.to_string()))?;
        }
    }
    for (id, content) in &prompt.answers {
        let question = open_question(&view, id).ok_or_else(|| no_question(id))?;
        let reply = if content.is_null() { Reply::Declined } else { Reply::Filled { content: content.clone() } };
        command(desk, peer, session, answer(peer, question, reply)).await?;
    }
    if prompt.parts.is_empty() {
        return Ok(Asked::Done);
    }
    if is_clear(&prompt.parts) {
        command(desk, peer, session, cleared()).await?;
        return Ok(Asked::Done);
    }
    if let Some(history) = history {
        command(desk, peer, session, replaced(&history)?).await?;
    }
    if let Some(patch) = mode.and_then(|mode| known_mode(desk, &view, &mode)) {
        command(desk, peer, session, Command::Configure { patch }).await?;
    }
    let parts = recipes::expanded(&desk.recipes, &peer.caller.principal, &view.workspace, prompt.parts).await?;
    let view = desk.hub.stored_view(session).await.map_err(|error| refusal(session, &error))?;
    let command = Command::Prompt { run, origin: origin(peer), parts, if_busy, meta };
    let accepted = desk.hub.submit(&peer.caller, session, command, Ack::Committed, Lent::default()).await.await;
    let accepted = accepted.map_err(|error| refusal(session, &error))?;
    Ok(Asked::Begun { view: Box::new(view), accepted })
}

/// Stops a run, or whatever runs.
pub async fn cancel(desk: &Services, peer: &Peer, session: SessionId, run: Option<RunId>) -> Result<(), ServiceError> {
    sessions::own(desk, peer, session).await?;
    command(desk, peer, session, Command::Cancel { run, origin: origin(peer) }).await
}

/// Answers a question about a tool. Its id is the tool call's or its own.
pub async fn confirm(desk: &Services, peer: &Peer, session: SessionId, id: &str, action: &str) -> Result<(), Wrong> {
    let view = sessions::own(desk, peer, session).await?;
    let question = open_question(&view, id).ok_or_else(|| no_question(id))?;
    let reply = chosen(question, action).ok_or_else(|| Wrong::BadAction(action.to_owned()))?;
    Ok(command(desk, peer, session, answer(peer, question, reply)).await?)
}

/// An empty history: what was said before stays in the log.
pub fn cleared() -> Command {
    Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared }
}

/// Carries out a command that nobody needs to hear more of.
pub async fn command(desk: &Services, peer: &Peer, session: SessionId, command: Command) -> Result<(), ServiceError> {
    let done = desk.hub.command(&peer.caller, session, command, Ack::Synced).await;
    done.map(drop).map_err(|error| refusal(session, &error))
}

fn replaced(history: &[Value]) -> Result<Command, BadMessage> {
    let replacement = input::conversation(history, &mut SystemIds)?;
    Ok(Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced })
}

fn origin(peer: &Peer) -> RunOrigin {
    RunOrigin { by: peer.caller.principal.clone(), door: DOOR.to_owned() }
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
fn known_mode(desk: &Services, view: &SessionView, mode: &str) -> Option<SettingsPatch> {
    let mode = if mode == "plan" { "planner" } else { mode };
    desk.agents.roster_in(&view.workspace).choose(mode, &view.settings)
}
