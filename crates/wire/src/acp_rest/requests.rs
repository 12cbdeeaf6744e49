//! Requests, read into what cannot be wrong.

use gander_domain::{Part, Role, RunId, SessionId};
use serde::Deserialize;

use super::content::read_acp_rest_part;
use super::refusal::AcpRestRefusal;
use super::types::{AcpRestMessage, AcpRestSession, RunMode, WireTime};
use crate::check;

/// A run that a client wants.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpRestRunRequest {
    /// Who shall serve it.
    pub agent: String,
    /// What was said before, as far as the client brings it along.
    pub before: Vec<HistoryMessage>,
    /// What is asked.
    pub parts: Vec<Part>,
    /// When the client began and finished it, if it says so.
    pub times: Option<[WireTime; 2]>,
    /// How the client wants to hear of it.
    pub mode: RunMode,
    /// In which session.
    pub session: RequestedSession,
    /// The client's own id for it: the same id twice is one run.
    pub run: Option<RunId>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryMessage {
    /// By whom.
    pub role: Role,
    pub parts: Vec<Part>,
}

/// The session that a run belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedSession {
    /// A new one.
    New,
    /// The one of this id, begun if it is not there.
    Named(SessionId),
    /// The same, and its history is what is found at these addresses.
    Described(SessionId, Vec<String>),
}

/// An answer to what a run asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeRequest {
    /// The answer.
    pub message: AcpRestMessage,
    /// How the client wants to hear of the rest.
    pub mode: RunMode,
    /// The session that the run is in, if the client says so.
    pub session: Option<SessionId>,
}

#[derive(Deserialize)]
struct CreateBody {
    agent_name: String,
    input: Vec<AcpRestMessage>,
    #[serde(default)]
    mode: RunMode,
    session_id: Option<SessionId>,
    session: Option<AcpRestSession>,
    run_id: Option<RunId>,
}

#[derive(Deserialize)]
struct ResumeBody {
    await_resume: AwaitResume,
    mode: RunMode,
    run_id: Option<RunId>,
    session_id: Option<SessionId>,
}

#[derive(Deserialize)]
struct CancelBody {
    run_id: Option<RunId>,
}

#[derive(Deserialize)]
struct AwaitResume {
    #[serde(rename = "type")]
    kind: String,
    message: Option<AcpRestMessage>,
}

impl AcpRestRunRequest {
    /// Reads the body of `POST /runs`.
    pub fn from_body(body: &[u8]) -> Result<Self, AcpRestRefusal> {
        let body: CreateBody = serde_json::from_slice(body).map_err(|error| acp_rest_json_refusal(&error))?;
        if !is_acp_rest_agent_role(&body.agent_name) {
            let name = shorten_for_acp_rest_refusal(&body.agent_name);
            return Err(AcpRestRefusal::unreadable(format!(
                "agent_name must be lower-case letters, digits, - and _: {name}"
            )));
        }
        let session = read_acp_rest_requested_session(body.session_id, body.session)?;
        check_acp_rest_request_links(&body.input)?;
        let mut lines = body.input.iter().map(read_acp_rest_history_message).collect::<Result<Vec<_>, _>>()?;
        let talk = lines.iter().any(|line| line.role == Role::Agent);
        let asked = if talk { lines.pop().into_iter().collect() } else { std::mem::take(&mut lines) };
        let parts: Vec<Part> = asked.into_iter().flat_map(|line| line.parts).collect();
        if parts.is_empty() {
            return Err(AcpRestRefusal::unreadable("input must have a message with a part"));
        }
        let times = body.input.last().and_then(|message| Some([message.created_at?, message.completed_at?]));
        Ok(Self { agent: body.agent_name, before: lines, parts, times, mode: body.mode, session, run: body.run_id })
    }
}

impl ResumeRequest {
    /// Reads the body of `POST /runs/{id}`. acp-sdk names the run in it once more.
    pub fn from_body(run: RunId, body: &[u8]) -> Result<Self, AcpRestRefusal> {
        let body: ResumeBody = serde_json::from_slice(body).map_err(|error| acp_rest_json_refusal(&error))?;
        let ResumeBody { await_resume, mode, run_id, session_id } = body;
        check_same_acp_rest_run_request(run, run_id)?;
        if await_resume.kind != "message" {
            return Err(AcpRestRefusal::wrong_state(format!("a message is awaited, not: {}", await_resume.kind)));
        }
        let message = await_resume.message.ok_or_else(|| AcpRestRefusal::unreadable("await_resume has no message"))?;
        read_acp_rest_history_message(&message)?;
        Ok(Self { message, mode, session: session_id })
    }
}

/// Checks the body of `POST /runs/{id}/cancel`. It needs none; one that names a run names this one.
pub fn check_acp_rest_cancel_request(run: RunId, body: &[u8]) -> Result<(), AcpRestRefusal> {
    if body.trim_ascii().is_empty() {
        return Ok(());
    }
    let body: Option<CancelBody> = serde_json::from_slice(body).map_err(|error| acp_rest_json_refusal(&error))?;
    check_same_acp_rest_run_request(run, body.and_then(|body| body.run_id))
}

fn check_same_acp_rest_run_request(address: RunId, body: Option<RunId>) -> Result<(), AcpRestRefusal> {
    match body {
        Some(named) if named != address => {
            Err(AcpRestRefusal::ids_disagree(format!("run_id of the body and the run of the address differ: {named}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// A prompt points to the web alone. What a stored history points to is data and not asked about.
fn check_acp_rest_request_links(messages: &[AcpRestMessage]) -> Result<(), AcpRestRefusal> {
    let links = messages.iter().flat_map(|message| &message.parts).filter_map(|part| part.content_url.as_deref());
    match links.into_iter().find(|link| !check::is_web_link(link)) {
        Some(link) => Err(AcpRestRefusal::unreadable(format!(
            "content_url must be http or https: {}",
            shorten_for_acp_rest_refusal(link)
        ))),
        None => Ok(()),
    }
}

/// A message that somebody else keeps, such as one of a session's history.
pub fn read_acp_rest_history_message(message: &AcpRestMessage) -> Result<HistoryMessage, AcpRestRefusal> {
    let role = parse_acp_rest_role(&message.role).ok_or_else(|| {
        AcpRestRefusal::unreadable(format!(
            "role must be user, agent or agent/name: {}",
            shorten_for_acp_rest_refusal(&message.role)
        ))
    })?;
    let parts = message.parts.iter().map(read_acp_rest_part).collect::<Result<Vec<_>, _>>()?;
    Ok(HistoryMessage { role, parts })
}

fn read_acp_rest_requested_session(
    id: Option<SessionId>,
    session: Option<AcpRestSession>,
) -> Result<RequestedSession, AcpRestRefusal> {
    let Some(session) = session else { return Ok(id.map_or(RequestedSession::New, RequestedSession::Named)) };
    let named = session.id.parse::<SessionId>().map_err(|_| AcpRestRefusal::unreadable("session.id must be a UUID"))?;
    if id.is_some_and(|id| id != named) {
        return Err(AcpRestRefusal::ids_disagree("session_id and session.id differ"));
    }
    Ok(RequestedSession::Described(named, session.history))
}

/// At most 63 of few characters: an underscore is one of them, for acp-sdk's own agents have it.
fn is_acp_rest_agent_role(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = name.bytes().next().is_some_and(plain);
    first && name.len() <= 63 && name.bytes().all(|byte| plain(byte) || b"_-".contains(&byte))
}

fn parse_acp_rest_role(role: &str) -> Option<Role> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    match role.split_once('/') {
        None if role == "user" => Some(Role::User),
        None if role == "agent" => Some(Role::Agent),
        Some(("agent", name)) if is_name(name) => Some(Role::Agent),
        Some(_) | None => None,
    }
}

fn acp_rest_json_refusal(error: &serde_json::Error) -> AcpRestRefusal {
    AcpRestRefusal::unreadable(format!("body cannot be read: {error}"))
}

fn shorten_for_acp_rest_refusal(text: &str) -> String {
    text.chars().take(64).collect()
}
