//! Agents and their modes.

use serde::{Deserialize, Serialize};

/// What an agent is and offers: every door shows the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentManifest {
    /// `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// For people.
    pub title: String,
    /// One paragraph.
    pub description: String,
    /// Its modes; the first is the default.
    pub modes: Vec<Mode>,
    /// Media types it takes, such as `text/plain` or `image/*`.
    pub takes: Vec<String>,
    /// Media types it gives.
    pub gives: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Where there is more about it.
    pub links: Vec<AgentLink>,
    /// Other names that it answers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// A session may go from one agent to another of the same family; absent: it stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Tools whose first result is not their last: somebody brings that later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long_running: Vec<String>,
    /// The agent's own version; absent: it has that of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the conversation of an earlier session can be read back and continued by another client.
    #[serde(default)]
    pub load_session: LoadSession,
}

/// Whether sessions of an agent can be loaded: the capability `loadSession` of ACP, which counts at every protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadSession {
    /// Their conversation can be read back, and they can be continued.
    #[default]
    Supported,
    /// A session is there for whoever began it alone: nobody gets its history.
    Unsupported,
}

/// Something an agent can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// For people.
    pub name: String,
    /// One sentence.
    pub description: String,
}

/// Where there is more about an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLink {
    /// What is there.
    pub kind: LinkKind,
    /// The address.
    pub url: String,
}

/// What is behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Its source.
    SourceCode,
    /// An image to run it from.
    ContainerImage,
    /// Its page.
    Homepage,
    /// How to use it.
    Documentation,
}

impl AgentManifest {
    /// An agent of one mode that takes and gives text.
    pub fn new(name: impl Into<String>, title: impl Into<String>, description: impl Into<String>) -> Self {
        let (title, description) = (title.into(), description.into());
        let mode = Mode {
            id: "default".to_owned(),
            name: title.clone(),
            description: description.clone(),
            category: ModeCategory::Session,
        };
        let text = || vec!["text/plain".to_owned()];
        Self {
            name: name.into(),
            title,
            description,
            modes: vec![mode],
            takes: text(),
            gives: text(),
            capabilities: Vec::new(),
            tags: Vec::new(),
            links: Vec::new(),
            aliases: Vec::new(),
            family: None,
            long_running: Vec::new(),
            version: None,
            load_session: LoadSession::Supported,
        }
    }

    /// The id of its default mode.
    pub fn default_mode(&self) -> &str {
        self.modes.first().map_or("default", |mode| mode.id.as_str())
    }
}

/// One way an agent works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Its id, of the same alphabet as an agent's name.
    pub id: String,
    /// For people.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// What kind of work it is made for.
    #[serde(default)]
    pub category: ModeCategory,
}

impl Mode {
    /// A mode for work with tools, over many turns.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        let (id, name, description) = (id.into(), name.into(), description.into());
        Self { id, name, description, category: ModeCategory::Session }
    }
}

/// What kind of work a mode is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeCategory {
    /// Work with tools, over many turns.
    #[default]
    Session,
    /// A text is written: it may look around, and changes nothing.
    PromptOnly,
    /// The model alone: no tools but those that store what it makes.
    LlmOnly,
}

impl ModeCategory {
    /// As lists of modes show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::PromptOnly => "prompt_only",
            Self::LlmOnly => "llm_only",
        }
    }
}
