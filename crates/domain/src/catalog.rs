//! What clients can choose from: agents, modes, models and slash commands.

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
    /// The policy of the server's settings; a session without a choice of its own has no looser one.
    pub policy: Option<Policy>,
}

impl SessionCatalog {
    /// What runs unasked in a session that is set like this.
    pub fn effective_policy(&self, settings: &Settings) -> Policy {
        settings.session_policy().under_setting(self.policy.unwrap_or(Policy::Auto))
    }
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// `provider/model`.
    pub id: String,
    /// For people.
    pub name: String,
}

/// A command that is a session's own, such as a prompt of an MCP server: what is typed goes to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// What is typed after the slash.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What is typed after its name, in words; empty if nothing is.
    pub hint: String,
}
