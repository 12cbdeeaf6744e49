//! Routing: who answers a prompt when the session leaves it open.

use serde::{Deserialize, Serialize};

/// Whether prompts are routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// The session stays in the mode it is set to.
    #[default]
    Off,
    /// By the words of the prompt.
    Rules,
    /// By asking a model.
    Model,
}

/// Who answers a prompt, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Which agent.
    pub agent: String,
    /// In which of its modes.
    pub mode: String,
    /// How sure that is, of a hundred.
    pub confidence: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Who decided.
    pub by: Routing,
}

impl Routing {
    /// True if nobody routes.
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}
