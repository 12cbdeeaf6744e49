//! The parameters of requests as they are written, and their checks.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::check_path_param;
use crate::acp::content::refuse_nul_in_content;
use crate::acp::schema::{ContentBlock, McpServer, SessionArchiveFilter};
use crate::acp::types::{AgentProfile, SessionParams};
use crate::jsonrpc::Error;

/// The longest name of a workspace in bytes.
const MAX_NAME: usize = 512;

/// Where in `_meta` of a new session stands who serves it.
const AGENT_META: [&str; 2] = ["agent", "gander/agent"];

/// Reads parameters.
pub(super) fn read_params<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params(format!("invalid params: {error}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    #[serde(default)]
    pub(super) protocol_version: Value,
    /// Version 2 has another name for it.
    #[serde(alias = "info")]
    pub(super) client_info: Option<Value>,
    pub(super) client_capabilities: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Authenticate {
    pub(super) method_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenParams {
    cwd: Option<String>,
    mcp_servers: Option<Vec<McpServer>>,
    additional_directories: Option<Vec<String>>,
    /// Facts about the session that a client wants back.
    metadata: Option<Map<String, Value>>,
    /// The name under which a client finds its workspace again.
    device_id: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct List {
    pub(super) cwd: Option<String>,
    pub(super) cursor: Option<String>,
    pub(super) archived: Option<SessionArchiveFilter>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt {
    pub(super) session_id: String,
    pub(super) prompt: Vec<ContentBlock>,
    pub(super) command: Option<CommandInput>,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct CommandInput {
    pub(super) name: String,
    pub(super) input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetTitle {
    pub(super) session_id: String,
    pub(super) title: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode {
    pub(super) session_id: String,
    pub(super) mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOption {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModel {
    pub(super) session_id: String,
    pub(super) model_id: String,
}

impl OpenParams {
    pub(super) fn into_session_params(self, profile: &AgentProfile) -> Result<SessionParams, Error> {
        let reuse = self.reused_workspace()?;
        let agent = self.named_agent()?;
        let folders = self.additional_directories.unwrap_or_default();
        self.cwd.as_deref().map_or(Ok(()), |cwd| check_path_param("cwd", cwd))?;
        folders.iter().try_for_each(|folder| check_path_param("additionalDirectories", folder))?;
        let mcp_servers = self.mcp_servers.unwrap_or_default();
        mcp_servers.iter().try_for_each(|server| check_mcp_server(server, profile))?;
        let meta = session_params_meta(self.meta, self.metadata);
        Ok(SessionParams { cwd: self.cwd, folders, mcp_servers, reuse, agent, meta })
    }

    /// The agent that a client wants, in `_meta` under [`AGENT_META`].
    fn named_agent(&self) -> Result<Option<String>, Error> {
        let named = self.meta.as_ref().and_then(|meta| AGENT_META.iter().find_map(|name| meta.get(*name)));
        let Some(named) = named.filter(|named| !named.is_null()) else { return Ok(None) };
        let name = named.as_str().filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
        let name = name.ok_or_else(|| Error::invalid_params("invalid params: _meta.agent must be an agent's name"))?;
        Ok(Some(name.to_owned()))
    }

    /// Mobile clients name the session, older ones themselves, whose workspace they want to go on in.
    fn reused_workspace(&self) -> Result<Option<String>, Error> {
        let named = self.meta.as_ref().and_then(|meta| meta.get("sessionId")?.as_str());
        let Some(name) = named.or(self.device_id.as_deref()) else { return Ok(None) };
        refuse_nul_in_content("workspace name", name)?;
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::invalid_params(format!("workspace name must have 1 to {MAX_NAME} bytes")));
        }
        Ok(Some(name.to_owned()))
    }
}

/// What goes into the log for this protocol to find again.
fn session_params_meta(meta: Option<Value>, metadata: Option<Map<String, Value>>) -> Option<Value> {
    let mut acp = Map::new();
    acp.extend(meta.filter(Value::is_object).map(|meta| ("_meta".to_owned(), meta)));
    acp.extend(metadata.map(|metadata| ("metadata".to_owned(), Value::Object(metadata))));
    (!acp.is_empty()).then(|| json!({ "acp": acp }))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn check_mcp_server(server: &McpServer, profile: &AgentProfile) -> Result<(), Error> {
    match server {
        McpServer::Stdio(stdio) => {
            refuse_nul_in_content("name", &stdio.name)?;
            refuse_nul_in_content("command", &stdio.command.to_string_lossy())?;
            stdio.args.iter().try_for_each(|argument| refuse_nul_in_content("args", argument))
        }
        McpServer::Http(http) if profile.mcp_http => {
            refuse_nul_in_content("name", &http.name).and(refuse_nul_in_content("url", &http.url))
        }
        McpServer::Sse(sse) if profile.mcp_sse => {
            refuse_nul_in_content("name", &sse.name).and(refuse_nul_in_content("url", &sse.url))
        }
        McpServer::Http(_) | McpServer::Sse(_) => {
            Err(Error::invalid_params("MCP servers of this kind are not supported, see mcpCapabilities"))
        }
        _ => Err(Error::invalid_params("MCP server of an unknown kind")),
    }
}
