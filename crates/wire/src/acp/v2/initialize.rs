//! What this agent says of itself in version 2.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v2::{
    self, AgentCapabilities, InitializeResponse, McpCapabilities, McpHttpCapabilities, McpStdioCapabilities,
    PromptAudioCapabilities, PromptCapabilities, PromptEmbeddedContextCapabilities, PromptImageCapabilities,
    SessionCapabilities,
};
use gander_domain::LoadSession;

use crate::acp::initialize::common_to_versions;
use crate::acp::types::AgentProfile;

common_to_versions!(v2);

/// The answer to `initialize`.
pub(in crate::acp) fn v2_initialize_response(profile: &AgentProfile) -> InitializeResponse {
    InitializeResponse::new(ProtocolVersion::V2, implementation_info(profile))
        .capabilities(AgentCapabilities::new().session(v2_session_capabilities(profile)))
        .auth_methods(auth_method_list(profile))
}

fn v2_session_capabilities(profile: &AgentProfile) -> SessionCapabilities {
    let prompt = PromptCapabilities::new()
        .image(profile.image.then(PromptImageCapabilities::new))
        .audio(profile.audio.then(PromptAudioCapabilities::new))
        .embedded_context(PromptEmbeddedContextCapabilities::new());
    let mcp = McpCapabilities::new()
        .stdio(profile.mcp_stdio.then(McpStdioCapabilities::new))
        .http(profile.mcp_http.then(McpHttpCapabilities::new));
    common_session_capabilities(profile).prompt(prompt).mcp(mcp)
}
