//! What this agent says of itself at `initialize`: exactly what works.

use agent_client_protocol_schema::ProtocolVersion;
use serde_json::{Map, Value, json};

use super::schema::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, Implementation, InitializeResponse,
    LogoutCapabilities, McpCapabilities, PromptCapabilities, SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionForkCapabilities, SessionListCapabilities, SessionResumeCapabilities, SessionStatusCapabilities,
    SessionTitleCapabilities,
};
use super::types::Profile;

/// The answer to `initialize`.
pub(super) fn response(profile: &Profile) -> InitializeResponse {
    let info = Implementation::new(profile.name.clone(), profile.version.clone());
    let logins = profile.logins.iter();
    let logins = logins.map(|login| AuthMethod::Agent(AuthMethodAgent::new(login.id.clone(), login.name.clone())));
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities(profile))
        .auth_methods(logins.collect())
        .agent_info(info.title(profile.title.clone()))
        .meta(extensions())
}

fn capabilities(profile: &Profile) -> AgentCapabilities {
    let prompt = PromptCapabilities::new().image(profile.image).audio(profile.audio).embedded_context(true);
    let mcp = McpCapabilities::new().http(profile.mcp_http).sse(profile.mcp_sse);
    let logout = (!profile.logins.is_empty()).then(LogoutCapabilities::new);
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(prompt)
        .mcp_capabilities(mcp)
        .session_capabilities(sessions())
        .auth(AgentAuthCapabilities::new().logout(logout))
}

fn sessions() -> SessionCapabilities {
    SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .title(SessionTitleCapabilities::new())
        .archive(SessionArchiveCapabilities::new())
        .status(SessionStatusCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
}

/// `_session/steering`, told as other agents tell it.
fn extensions() -> Map<String, Value> {
    Map::from_iter([("steering".to_owned(), json!({ "supported": true }))])
}
