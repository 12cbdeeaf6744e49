//! The settings of a session, and a change of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Route, Routing};

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
    /// Somebody chose the policy for this session: a stricter one of the server's settings does not count for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub policy_chosen: bool,
    /// How hard the model thinks; absent: the model's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How freely the model chooses its words, in hundredths; absent: the model's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<u16>,
    /// Model calls in one run; absent: the server's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// What all runs together may use.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Who chooses the mode.
    #[serde(default, skip_serializing_if = "Routing::is_off")]
    pub routing: Routing,
    /// How the model is called.
    #[serde(default, skip_serializing_if = "ModelParams::is_empty")]
    pub model_params: ModelParams,
    /// What options of the agent's own are set to, by their ids. An agent is told those that it offers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_options: BTreeMap<String, String>,
}

/// How a session's model is called, besides what the server itself says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelParams {
    /// Tokens that its window is taken to hold; absent: as the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Fields of the provider's request. What the server sets itself stays.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request: Map<String, Value>,
}

impl ModelParams {
    /// True if the server alone decides.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What all runs of a session together may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// What may run unasked, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// What a session lets run unasked, and whether somebody chose that for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPolicy {
    /// The policy that it has.
    pub policy: Policy,
    /// Somebody who may said so; else it is what the server's settings were when the session began.
    pub chosen: bool,
}

impl SessionPolicy {
    /// One that somebody chose.
    pub fn chosen(policy: Policy) -> Self {
        Self { policy, chosen: true }
    }

    /// What counts while the server's settings say this. Settings that became stricter count at once for every session
    /// that has no choice of its own; looser ones count for sessions to come.
    pub fn under_setting(self, setting: Policy) -> Policy {
        if self.chosen { self.policy } else { self.policy.min(setting) }
    }
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
    /// New temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<u16>,
    /// New limit of model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// New budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// New chooser of the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// How the model is called from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_params: Option<ModelParams>,
    /// New values of options of the agent's own; the others stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_options: BTreeMap<String, String>,
}

impl Budget {
    /// True if there is no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

impl Settings {
    /// An agent in one of its modes that asks before it changes anything, everything else left to the server.
    pub fn new(agent: impl Into<String>, mode: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            mode: mode.into(),
            model: None,
            policy: Policy::Ask,
            policy_chosen: false,
            effort: None,
            temperature: None,
            max_turns: None,
            budget: Budget::default(),
            routing: Routing::Off,
            model_params: ModelParams::default(),
            agent_options: BTreeMap::new(),
        }
    }

    /// The policy, and whether somebody chose it.
    pub fn session_policy(&self) -> SessionPolicy {
        SessionPolicy { policy: self.policy, chosen: self.policy_chosen }
    }

    /// Applies what the patch names. A mode that somebody chose is not routed away.
    pub fn apply_patch(&mut self, patch: &SettingsPatch) {
        let SettingsPatch { agent, mode, model, policy, effort, temperature, max_turns, budget, routing, .. } = patch;
        let SettingsPatch { model_params, agent_options, .. } = patch;
        if agent.is_some() || mode.is_some() {
            self.routing = Routing::Off;
        }
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
            (self.policy, self.policy_chosen) = (*policy, true);
        }
        if effort.is_some() {
            self.effort = *effort;
        }
        self.temperature = temperature.or(self.temperature);
        self.max_turns = max_turns.or(self.max_turns);
        self.budget = budget.unwrap_or(self.budget);
        self.routing = routing.unwrap_or(self.routing);
        if let Some(model_params) = model_params {
            self.model_params.clone_from(model_params);
        }
        self.agent_options.extend(agent_options.iter().map(|(id, value)| (id.clone(), value.clone())));
    }

    /// Goes where a prompt was routed. The next one may go elsewhere.
    pub fn apply_route(&mut self, route: &Route) {
        self.agent.clone_from(&route.agent);
        self.mode.clone_from(&route.mode);
    }
}
