//! What this agent says of itself at `initialize`: exactly what works.

use agent_client_protocol_schema::ProtocolVersion;
use gander_domain::LoadSession;
use serde_json::{Map, Value, json};

use super::abilities::{ClientAbilities, TERMINAL_LOGIN_META};
use super::schema::{
    self, AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodTerminal, InitializeResponse,
    LogoutCapabilities, McpCapabilities, PromptCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use super::types::AgentProfile;

/// What every version says in the same words, each in its own types: who this is, how to log in, and what can be done
/// with a session.
macro_rules! common_to_versions {
    ($schema:ident) => {
        fn implementation_info(profile: &AgentProfile) -> $schema::Implementation {
            let info = $schema::Implementation::new(profile.name.clone(), profile.version.clone());
            info.title(profile.title.clone())
        }

        fn auth_method_list(profile: &AgentProfile) -> Vec<$schema::AuthMethod> {
            let login = |id: &str, name: &str| $schema::AuthMethodAgent::new(id.to_owned(), name.to_owned());
            profile.logins.iter().map(|of| $schema::AuthMethod::Agent(login(&of.id, &of.name))).collect()
        }

        fn common_session_capabilities(profile: &AgentProfile) -> $schema::SessionCapabilities {
            let loads = profile.load_session == LoadSession::Supported;
            $schema::SessionCapabilities::new()
                .delete($schema::SessionDeleteCapabilities::new())
                .fork(loads.then($schema::SessionForkCapabilities::new))
                .title($schema::SessionTitleCapabilities::new())
                .archive($schema::SessionArchiveCapabilities::new())
                .status($schema::SessionStatusCapabilities::new())
                .additional_directories($schema::SessionAdditionalDirectoriesCapabilities::new())
        }
    };
}

pub(super) use common_to_versions;
common_to_versions!(schema);

/// The argument that makes this program ask for a provider's key, and the id of that way to log in. Clients add it to the
/// arguments that they start an agent with (`gander acp setup`) or put it in their place (`gander setup`).
pub(super) const SETUP: &str = "setup";
const SETUP_NAME: &str = "Set up a model";
const SETUP_DESCRIPTION: &str = "Choose a provider and enter its key in a terminal; sessions work without it";

/// The answer to `initialize`.
pub(super) fn v1_initialize_response(profile: &AgentProfile, abilities: ClientAbilities) -> InitializeResponse {
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(v1_agent_capabilities(profile))
        .auth_methods(auth_method_list(profile).into_iter().chain(setup_method(profile, abilities)).collect())
        .agent_info(implementation_info(profile))
        .meta(initialize_extension_capabilities())
}

/// Only for clients that can start it: nobody has to log in, and others would take it for a login through `authenticate`.
fn setup_method(profile: &AgentProfile, abilities: ClientAbilities) -> Option<AuthMethod> {
    let program = profile.setup.as_ref().filter(|_| abilities.terminal_login)?;
    let started = json!({ "label": SETUP_NAME, "command": program, "args": [SETUP] });
    let method = AuthMethodTerminal::new(SETUP, SETUP_NAME).description(SETUP_DESCRIPTION.to_owned());
    let meta = Map::from_iter([(TERMINAL_LOGIN_META.to_owned(), started)]);
    Some(AuthMethod::Terminal(method.args(vec![SETUP.to_owned()]).meta(meta)))
}

fn v1_agent_capabilities(profile: &AgentProfile) -> AgentCapabilities {
    let prompt = PromptCapabilities::new().image(profile.image).audio(profile.audio).embedded_context(true);
    let mcp = McpCapabilities::new().http(profile.mcp_http).sse(profile.mcp_sse);
    let logout = (!profile.logins.is_empty()).then(LogoutCapabilities::new);
    AgentCapabilities::new()
        .load_session(profile.load_session == LoadSession::Supported)
        .prompt_capabilities(prompt)
        .mcp_capabilities(mcp)
        .session_capabilities(v1_session_capabilities(profile))
        .auth(AgentAuthCapabilities::new().logout(logout))
}

fn v1_session_capabilities(profile: &AgentProfile) -> SessionCapabilities {
    let loads = profile.load_session == LoadSession::Supported;
    common_session_capabilities(profile)
        .list(loads.then(SessionListCapabilities::new))
        .resume(loads.then(SessionResumeCapabilities::new))
        .close(SessionCloseCapabilities::new())
}

/// `_session/steering`, told as other agents tell it.
fn initialize_extension_capabilities() -> Map<String, Value> {
    Map::from_iter([("steering".to_owned(), json!({ "supported": true }))])
}
