//! What clients can choose from: agents, modes, models and slash commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Effort, Policy, Roster, Settings, SettingsPatch};

/// What a session can be set to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionCatalog {
    /// All agents and the names of their modes.
    pub roster: Arc<Roster>,
    /// Models that can be chosen.
    pub models: Vec<ModelChoice>,
    /// The model of a session that chose none.
    pub default_model: Option<String>,
    /// How hard the model can be told to think; empty: it cannot.
    pub efforts: Vec<Effort>,
    /// Models of agents that bring their own, by the agents' names.
    pub agent_models: BTreeMap<String, AgentModels>,
    /// Options of agents that bring their own, by the agents' names.
    pub agent_options: BTreeMap<String, Vec<AgentOption>>,
    /// The policy of the server's settings; a session without a choice of its own has no looser one.
    pub policy: Option<Policy>,
}

impl SessionCatalog {
    /// What runs unasked in a session that is set like this.
    pub fn effective_policy(&self, settings: &Settings) -> Policy {
        settings.session_policy().under_setting(self.policy.unwrap_or(Policy::Auto))
    }

    /// Options of the session's agent that are its own, in the agent's order.
    pub fn options_of_agent(&self, settings: &Settings) -> &[AgentOption] {
        self.agent_options.get(&settings.agent).map(Vec::as_slice).unwrap_or_default()
    }
}

/// An option of an agent's own, beside its mode and its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    pub id: String,
    /// For people.
    pub name: String,
    /// One sentence; may be empty.
    pub description: String,
    /// What kind of option it is, in the protocol's words, such as `thought_level`.
    pub category: Option<String>,
    /// What it is in a new session.
    pub default_value: String,
    pub choices: Vec<OptionChoice>,
}

/// One value of an agent's option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionChoice {
    pub value: String,
    /// For people.
    pub name: String,
}

impl AgentOption {
    /// What it is set to. A value that the agent does not know was chosen for another agent.
    pub fn current_value<'a>(&'a self, settings: &'a Settings) -> &'a str {
        let chosen = settings.agent_options.get(&self.id).map(String::as_str);
        chosen.filter(|chosen| self.has_choice(chosen)).unwrap_or(&self.default_value)
    }

    /// The change of settings that this value means; none if there is no such choice.
    pub fn value_patch(&self, value: &str) -> Option<SettingsPatch> {
        let agent_options = BTreeMap::from([(self.id.clone(), value.to_owned())]);
        self.has_choice(value).then(|| SettingsPatch { agent_options, ..SettingsPatch::default() })
    }

    /// True if it is on or off, and nothing else.
    pub fn is_switch(&self) -> bool {
        self.choices.len() == 2 && ["true", "false"].iter().all(|value| self.has_choice(value))
    }

    fn has_choice(&self, value: &str) -> bool {
        self.choices.iter().any(|choice| choice.value == value)
    }
}

/// The models of an agent that brings its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentModels {
    pub models: Vec<ModelChoice>,
    /// The one that answers unless another is chosen.
    pub default_model: Option<String>,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// `provider/model`.
    pub id: String,
    /// For people.
    pub name: String,
}

/// A command that a person types after a slash in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// Who carries it out.
    pub kind: SlashCommandKind,
    /// What is typed after the slash.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What is typed after its name, in words; empty if nothing is.
    pub hint: String,
}

/// Who carries out a slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashCommandKind {
    /// The session itself: see [`SessionCommand`](crate::SessionCommand).
    Session,
    /// The session's agent, which is sent the text as it was typed.
    Agent,
    /// A recipe: its text takes the place of what was typed.
    Recipe,
    /// A prompt of an MCP server, likewise.
    McpPrompt,
}

impl SlashCommand {
    /// A command of this kind without input.
    pub fn new(kind: SlashCommandKind, name: &str, description: &str) -> Self {
        Self { kind, name: name.to_owned(), description: description.to_owned(), hint: String::new() }
    }

    /// Those that every session carries out itself.
    pub fn of_every_session() -> Vec<Self> {
        let session = |name, description| Self::new(SlashCommandKind::Session, name, description);
        vec![
            session("clear", "Start over with an empty conversation in the same workspace"),
            Self { hint: "the new title".to_owned(), ..session("title", "Give this session a title") },
        ]
    }
}
