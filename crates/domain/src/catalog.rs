//! What clients can choose from: agents, modes and models.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agent_option::AgentOption;
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
