//! Options that an agent offers of its own.

use std::collections::BTreeMap;

use crate::{Settings, SettingsPatch};

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
