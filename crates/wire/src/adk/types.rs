//! What goes over the wire. Clients in python forbid keys they do not know in all of these but [`AdkEvent`].

use gander_domain::{State, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};

/// One event of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdkEvent {
    /// The model that spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_version: Option<String>,
    /// What was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<AdkContent>,
    /// A piece of something whole that follows; absent where nothing is told in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// A live turn is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_complete: Option<bool>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<&'static str>,
    /// A word for what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// A sentence about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// It was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
    /// What the run's client and this server say beside.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub custom_metadata: Map<String, Value>,
    /// What the model call used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_metadata: Option<AdkUsageMetadata>,
    /// The run.
    pub invocation_id: String,
    /// The agent's name, or `user`.
    pub author: String,
    /// What it does beside saying something.
    pub actions: AdkActions,
    /// Which agent of a tree.
    pub node_info: NodeInfo,
    /// Calls that somebody else answers; absent where there is no call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_running_tool_ids: Option<Vec<String>>,
    /// Pieces and their whole share it.
    pub id: String,
    /// Seconds.
    pub timestamp: f64,
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdkContent {
    /// Its parts.
    pub parts: Vec<Value>,
    /// `user` or `model`.
    pub role: &'static str,
}

/// What an event does beside saying something.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdkActions {
    /// Nobody need put it into words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_summarization: Option<bool>,
    /// Values that changed.
    pub state_delta: State,
    /// Artifacts and their new versions.
    pub artifact_delta: Map<String, Value>,
    /// Who speaks from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_to_agent: Option<String>,
    /// Never asked for here.
    pub requested_auth_configs: Map<String, Value>,
    /// Calls that wait for a yes.
    pub requested_tool_confirmations: Map<String, Value>,
}

/// Which agent of a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeInfo {
    /// Empty for the user.
    pub path: String,
}

/// What a model call used.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdkUsageMetadata {
    /// Written.
    pub candidates_token_count: u64,
    /// Read.
    pub prompt_token_count: u64,
    /// Of those read, from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_content_token_count: Option<u64>,
    /// Thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thoughts_token_count: Option<u64>,
    /// All.
    pub total_token_count: u64,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdkSession {
    /// As the client calls it.
    pub id: String,
    /// The agent.
    pub app_name: String,
    /// The user.
    pub user_id: String,
    /// Its values, and those it shares.
    pub state: State,
    /// What happened; empty in lists.
    pub events: Vec<AdkEvent>,
    /// Seconds.
    pub last_update_time: f64,
}

/// A version of an artifact, without its content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactVersion {
    /// From 0.
    pub version: u64,
    /// Where it is.
    pub canonical_uri: String,
    /// What its saver wants to find again.
    pub custom_metadata: Map<String, Value>,
    /// Seconds.
    pub create_time: f64,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl AdkEvent {
    /// An event that does nothing yet.
    pub fn new(invocation: &str, author: &str, id: String, at: Timestamp) -> Self {
        let path = if author == "user" { String::new() } else { format!("{author}@1") };
        Self {
            model_version: None,
            content: None,
            partial: None,
            turn_complete: None,
            finish_reason: None,
            error_code: None,
            error_message: None,
            interrupted: None,
            custom_metadata: Map::new(),
            usage_metadata: None,
            invocation_id: invocation.to_owned(),
            author: author.to_owned(),
            actions: AdkActions::default(),
            node_info: NodeInfo { path },
            long_running_tool_ids: None,
            id,
            timestamp: adk_epoch_seconds(at),
        }
    }

    /// The same, saying this.
    pub fn with_content(self, role: &'static str, parts: Vec<Value>) -> Self {
        Self { content: Some(AdkContent { parts, role }), ..self }
    }
}

/// Seconds with a fraction.
pub fn adk_epoch_seconds(at: Timestamp) -> f64 {
    at.as_micros() as f64 / 1e6
}
