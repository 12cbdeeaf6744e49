//! Agents, their modes, and the settings of a session.

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
        let mode = Mode { id: "default".to_owned(), name: title.clone(), description: description.clone() };
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
}

/// What a session is set to. Changed only by `SettingsChanged`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Which agent serves it.
    pub agent: String,
    /// Which of its modes.
    pub mode: String,
    /// `provider/model`; absent: the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What may run unasked.
    pub policy: Policy,
    /// How hard the model thinks; absent: the model's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// What may run unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Only looking; everything else is refused.
    ReadOnly,
    /// Looking is free, everything else asks.
    Ask,
    /// Looking and editing inside the workspace are free, the rest asks.
    AutoEdit,
    /// Everything runs, except what a rule denies or asks for.
    Auto,
}

/// How hard a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where the model can be told so.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
}

/// A change of settings: what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsPatch {
    /// New agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// New mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// New model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// New policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// New effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl Settings {
    /// Applies what the patch names.
    pub fn apply(&mut self, patch: &SettingsPatch) {
        let SettingsPatch { agent, mode, model, policy, effort } = patch;
        if let Some(agent) = agent {
            self.agent.clone_from(agent);
        }
        if let Some(mode) = mode {
            self.mode.clone_from(mode);
        }
        if model.is_some() {
            self.model.clone_from(model);
        }
        if let Some(policy) = policy {
            self.policy = *policy;
        }
        if effort.is_some() {
            self.effort = *effort;
        }
    }
}
