//! Prompts of goose clients: begun, cancelled, and what they wait for answered.

use gander_domain::{
    Accepted, Command, IfBusy, Question, Reply, ResetReason, RunId, RunOrigin, Seq, ServiceError, SessionId,
    SessionView, SettingsPatch,
};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::Ack;
use gander_services::errors::{service_error_from_hub, service_error_from_store};
use gander_services::request_hash::RequestHash;
use gander_services::{Services, prompts};
use gander_store::clock::SystemIds;
use gander_wire::check;
use gander_wire::goose::question::read_goose_action;
use gander_wire::goose::requests::{self, BadGooseMessage};
use serde_json::Value;

use super::sessions;
use crate::ClientPeer;

/// The name of this protocol in the log.
pub const PROTOCOL_NAME: &str = "goose";

/// A prompt as any version of goose's clients sends it.
#[derive(Debug)]
pub struct PromptRequest {
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
pub enum PromptOutcome {
    /// Its run is told by the log after this place; this is the session there.
    Begun { view: Box<SessionView>, accepted: Accepted },
    /// It was an answer, or a command that is carried out.
    Done,
}

/// Why a prompt or an answer is not taken.
#[derive(Debug, thiserror::Error)]
pub enum GooseRunError {
    /// The session or the server says no.
    #[error(transparent)]
    Refused(#[from] ServiceError),
    /// The message cannot be read.
    #[error(transparent)]
    Message(#[from] BadGooseMessage),
    /// It answers what nobody asked, or what was answered.
    #[error("nothing waits for an answer under this id: {0}")]
    NoQuestion(String),
    /// Its request id stands for another request.
    #[error("request_id was used for another request, choose a new one: {0}")]
    KeyReused(RunId),
    /// It is no way to answer.
    #[error("no such action: {0}")]
    BadAction(String),
    /// Nothing works in this mode.
    #[error("no such mode: {mode}; known modes: {known}")]
    UnknownMode { mode: String, known: String },
}

/// Carries out a prompt whose id the client chose: the same request again changes nothing, another one with the same id
/// is refused before any of it is carried out.
pub async fn begin_goose_run_once(
    services: &Services,
    peer: &ClientPeer,
    request: PromptRequest,
) -> Result<PromptOutcome, GooseRunError> {
    let (session, run) = (request.session, request.run);
    sessions::find_own_goose_session(services, peer, session).await?;
    let hash = RequestHash::new(&(PROTOCOL_NAME, &request.message, &request.history));
    if was_goose_run_begun(services, peer, (session, run), &hash).await? {
        return Ok(PromptOutcome::Done);
    }
    let asked = begin_goose_prompt(services, peer, request, Some(hash.add_to_meta(None))).await?;
    if let PromptOutcome::Begun { accepted: Accepted::Repeated(_), .. } = &asked {
        was_goose_run_begun(services, peer, (session, run), &hash).await?; // just now, by another request
    }
    Ok(asked)
}

/// Carries out a prompt.
pub async fn begin_goose_run(
    services: &Services,
    peer: &ClientPeer,
    request: PromptRequest,
) -> Result<PromptOutcome, GooseRunError> {
    begin_goose_prompt(services, peer, request, None).await
}

/// True if this very request began the run of this id. Another principal's id is as unknown as none.
async fn was_goose_run_begun(
    services: &Services,
    peer: &ClientPeer,
    key: (SessionId, RunId),
    hash: &RequestHash,
) -> Result<bool, GooseRunError> {
    let (session, run) = key;
    let row = services.sessions.find_run(&peer.caller, run).await.map_err(ServiceError::from)?;
    let Some(row) = row else { return Ok(false) };
    let store = &**services.hub.store();
    let same = row.session == session
        && hash.started_run(store, &row).await.map_err(|error| service_error_from_store(&error))?;
    if same { Ok(true) } else { Err(GooseRunError::KeyReused(run)) }
}

async fn begin_goose_prompt(
    services: &Services,
    peer: &ClientPeer,
    request: PromptRequest,
    meta: Option<Value>,
) -> Result<PromptOutcome, GooseRunError> {
    let PromptRequest { session, run, message, history, mode, if_busy } = request;
    let view = sessions::find_own_goose_session(services, peer, session).await?;
    let prompt = requests::read_goose_prompt(&message)?;
    let mode_patch = mode.map(|mode| goose_run_mode_patch(services, &view, &mode)).transpose()?;
    if let Some(agent) = services.agents.roster_in_folder(&view.workspace).find_manifest(&view.settings.agent) {
        let takes = services.with_accepted_media(&agent).takes;
        for part in &prompt.parts {
            check::check_media_for(part, &takes).map_err(|error| BadGooseMessage::BadMedia(error.to_string()))?;
        }
    }
    for (id, content) in &prompt.answers {
        let question = find_open_goose_question(&view, id).ok_or_else(|| no_such_goose_question(id))?;
        let reply = if content.is_null() { Reply::Declined } else { Reply::Filled { content: content.clone() } };
        send_goose_command(services, peer, session, goose_answer_command(peer, question, reply)).await?;
    }
    if prompt.parts.is_empty() {
        return Ok(PromptOutcome::Done);
    }
    if let Some(history) = history {
        send_goose_command(services, peer, session, goose_replace_history_command(&history)?).await?;
    }
    if let Some(patch) = mode_patch {
        send_goose_command(services, peer, session, Command::Configure { patch }).await?;
    }
    let parts = prompts::prepare_prompt(services, &peer.caller, session, prompt.parts).await?;
    let view = services.sessions.stored_view(&peer.caller, session).await.map_err(ServiceError::from)?;
    let command = Command::Prompt { run, origin: goose_run_origin(peer), parts, if_busy, meta };
    let accepted = services
        .hub
        .submit_command(&peer.caller, session, command, Ack::Committed, ClientResources::default())
        .await
        .await;
    let accepted = accepted.map_err(|error| service_error_from_hub(session, &error))?;
    Ok(PromptOutcome::Begun { view: Box::new(view), accepted })
}

/// Stops a run, or whatever runs.
pub async fn cancel_goose_run(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    run: Option<RunId>,
) -> Result<(), ServiceError> {
    sessions::find_own_goose_session(services, peer, session).await?;
    send_goose_command(services, peer, session, Command::Cancel { run, origin: goose_run_origin(peer) }).await
}

/// Answers a question about a tool. Its id is the tool call's or its own.
pub async fn confirm_goose_tool(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    id: &str,
    action: &str,
) -> Result<(), GooseRunError> {
    let view = sessions::find_own_goose_session(services, peer, session).await?;
    let question = find_open_goose_question(&view, id).ok_or_else(|| no_such_goose_question(id))?;
    let reply = read_goose_action(question, action).ok_or_else(|| GooseRunError::BadAction(action.to_owned()))?;
    Ok(send_goose_command(services, peer, session, goose_answer_command(peer, question, reply)).await?)
}

/// An empty history: what was said before stays in the log.
pub fn goose_clear_history_command() -> Command {
    Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared }
}

/// Carries out a command that nobody needs to hear more of.
pub async fn send_goose_command(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    command: Command,
) -> Result<(), ServiceError> {
    let done = services.hub.execute_command(&peer.caller, session, command, Ack::Synced).await;
    done.map(drop).map_err(|error| service_error_from_hub(session, &error))
}

fn goose_replace_history_command(history: &[Value]) -> Result<Command, BadGooseMessage> {
    let replacement = requests::read_goose_conversation(history, &mut SystemIds)?;
    Ok(Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced })
}

fn goose_run_origin(peer: &ClientPeer) -> RunOrigin {
    RunOrigin { by: peer.caller.principal.clone(), door: PROTOCOL_NAME.to_owned() }
}

fn goose_answer_command(peer: &ClientPeer, question: &Question, reply: Reply) -> Command {
    Command::Answer { question: question.id, reply, origin: goose_run_origin(peer), meta: None }
}

fn find_open_goose_question<'a>(view: &'a SessionView, id: &str) -> Option<&'a Question> {
    let mut questions = view.run.as_ref()?.questions.iter();
    questions.find(|open| open.id.to_string() == id || open.call.is_some_and(|call| call.to_string() == id))
}

fn no_such_goose_question(id: &str) -> GooseRunError {
    GooseRunError::NoQuestion(id[..id.floor_char_boundary(64)].to_owned())
}

/// What a mode changes: how the agent works from now on. `plan` is what a branch of goose called our planner.
pub fn goose_run_mode_patch(
    services: &Services,
    view: &SessionView,
    mode: &str,
) -> Result<SettingsPatch, GooseRunError> {
    let roster = services.agents.roster_in_folder(&view.workspace);
    let name = if mode == "plan" { "planner" } else { mode };
    roster.patch_for_name(name, &view.settings).ok_or_else(|| {
        let ours = roster.available_modes(&view.settings).map(|way| way.name.as_str());
        let known: Vec<&str> = ours.chain(["plan"]).collect();
        GooseRunError::UnknownMode { mode: mode[..mode.floor_char_boundary(64)].to_owned(), known: known.join(", ") }
    })
}
