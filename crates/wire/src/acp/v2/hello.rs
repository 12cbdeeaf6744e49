//! What this agent says of itself in version 2.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v2::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, Implementation, InitializeResponse, McpCapabilities,
    McpHttpCapabilities, McpStdioCapabilities, PromptAudioCapabilities, PromptCapabilities,
    PromptEmbeddedContextCapabilities, PromptImageCapabilities, SessionAdditionalDirectoriesCapabilities,
    SessionArchiveCapabilities, SessionCapabilities, SessionDeleteCapabilities, SessionForkCapabilities,
    SessionStatusCapabilities, SessionTitleCapabilities,
};

use crate::acp::types::Profile;

/// The answer to `initialize`.
pub(in crate::acp) fn response(profile: &Profile) -> InitializeResponse {
    let info = Implementation::new(profile.name.clone(), profile.version.clone()).title(profile.title.clone());
    let logins = profile.logins.iter();
    let logins = logins.map(|login| AuthMethod::Agent(AuthMethodAgent::new(login.id.clone(), login.name.clone())));
    InitializeResponse::new(ProtocolVersion::V2, info)
        .capabilities(AgentCapabilities::new().session(sessions(profile)))
        .auth_methods(logins.collect())
}

fn sessions(profile: &Profile) -> SessionCapabilities {
    let prompt = PromptCapabilities::new()
        .image(profile.image.then(PromptImageCapabilities::new))
        .audio(profile.audio.then(PromptAudioCapabilities::new))
        .embedded_context(PromptEmbeddedContextCapabilities::new());
    let mcp = McpCapabilities::new()
        .stdio(profile.mcp_stdio.then(McpStdioCapabilities::new))
        .http(profile.mcp_http.then(McpHttpCapabilities::new));
    SessionCapabilities::new()
        .prompt(prompt)
        .mcp(mcp)
        .delete(SessionDeleteCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .title(SessionTitleCapabilities::new())
        .archive(SessionArchiveCapabilities::new())
        .status(SessionStatusCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
}
