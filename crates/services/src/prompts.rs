//! What a prompt needs before it becomes a command, the same for every protocol: media that the model takes, and slash
//! commands in their full length.

use gander_agent::modes::FAMILY;
use gander_domain::caller::Caller;
use gander_domain::{AgentManifest, Part, ServiceError, SessionId, SessionView};

use crate::{Services, slash_commands};

/// Sounds that models take, where they take any.
const AUDIO_TYPES: [&str; 2] = ["audio/wav", "audio/mpeg"];

/// The parts of a prompt to this session, or why they are refused.
pub async fn prepare_prompt(
    services: &Services,
    caller: &Caller,
    session: SessionId,
    parts: Vec<Part>,
) -> Result<Vec<Part>, ServiceError> {
    if parts.iter().any(is_prompt_audio) {
        check_prompt_audio(services, &services.sessions.view(caller, session).await?).await?;
    }
    slash_commands::expand_slash_command(services, caller, session, parts).await
}

/// Refuses sounds in words to a running turn whose model takes none.
pub async fn check_prompt_media(services: &Services, view: &SessionView, parts: &[Part]) -> Result<(), ServiceError> {
    if parts.iter().any(is_prompt_audio) { check_prompt_audio(services, view).await } else { Ok(()) }
}

impl Services {
    /// An agent with everything that its prompts may hold: whether a built-in one takes sounds is its model's matter.
    pub fn with_accepted_media(&self, agent: &AgentManifest) -> AgentManifest {
        let mut agent = agent.clone();
        let default = self.models.known_default();
        if is_native_for_prompt(&agent) && default.is_some_and(|model| self.models.takes_audio(&model)) {
            agent.takes.extend(AUDIO_TYPES.map(str::to_owned));
        }
        agent
    }
}

/// The session's own model decides: it may be another than the one that new sessions get.
async fn check_prompt_audio(services: &Services, view: &SessionView) -> Result<(), ServiceError> {
    if !services.agents.manifest(&view.settings.agent).is_some_and(|agent| is_native_for_prompt(&agent)) {
        return Ok(()); // what another agent takes is in its manifest
    }
    let model = match &view.settings.model {
        Some(model) => model.clone(),
        None => services.models.default_model().await.model,
    };
    match services.models.takes_audio(&model) {
        true => Ok(()),
        false => Err(ServiceError::BadParams(format!("the model of this session takes no audio: {model}"))),
    }
}

fn is_prompt_audio(part: &Part) -> bool {
    match part {
        Part::Audio { .. } => true,
        Part::Resource { mime: Some(mime), blob: Some(_), .. } => mime.starts_with("audio/"),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => false,
    }
}

fn is_native_for_prompt(agent: &AgentManifest) -> bool {
    agent.family.as_deref() == Some(FAMILY)
}
