//! What clients can choose from: agents, modes, models and slash commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Effort, Policy, Roster, Settings};

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
    /// The policy of the server's settings; a session without a choice of its own has no looser one.
    pub policy: Option<Policy>,
}

impl SessionCatalog {
    /// What runs unasked in a session that is set like this.
    pub fn effective_policy(&self, settings: &Settings) -> Policy {
        settings.session_policy().under_setting(self.policy.unwrap_or(Policy::Auto))
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
