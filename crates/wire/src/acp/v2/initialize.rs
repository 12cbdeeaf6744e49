//! What this agent says of itself in version 2.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v2::{
    self, AgentCapabilities, InitializeResponse, McpCapabilities, McpHttpCapabilities, McpStdioCapabilities,
    PromptAudioCapabilities, PromptCapabilities, PromptEmbeddedContextCapabilities, PromptImageCapabilities,
    SessionCapabilities,
};

use crate::acp::initialize::same_in_every_version;
use crate::acp::types::AgentProfile;

same_in_every_version!(v2);

/// The answer to `initialize`.
pub(in crate::acp) fn initialize_response(profile: &AgentProfile) -> InitializeResponse {
    InitializeResponse::new(ProtocolVersion::V2, info(profile))
        .capabilities(AgentCapabilities::new().session(session_capabilities(profile)))
        .auth_methods(logins(profile))
}

fn session_capabilities(profile: &AgentProfile) -> SessionCapabilities {
    let prompt = PromptCapabilities::new()
        .image(profile.image.then(PromptImageCapabilities::new))
        .audio(profile.audio.then(PromptAudioCapabilities::new))
        .embedded_context(PromptEmbeddedContextCapabilities::new());
    let mcp = McpCapabilities::new()
        .stdio(profile.mcp_stdio.then(McpStdioCapabilities::new))
        .http(profile.mcp_http.then(McpHttpCapabilities::new));
    sessions().prompt(prompt).mcp(mcp)
}
