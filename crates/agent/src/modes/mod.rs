//! Agents and their modes as data: Markdown files with front matter, built in, the owner's own and a project's.

mod builtin;
mod catalog;
mod mode_file;
mod mode_set;

use std::sync::Arc;

pub use gander_domain::ModeCategory as Category;
use gander_domain::Policy;
use gander_tools::{Group, ListedTool};

pub use catalog::{AgentCatalog, ScopedCatalog};
pub use mode_file::{BadFile, ModeFile};
pub use mode_set::ModeSet;

/// The name of the agent that serves whoever names none.
pub const AGENT: &str = "gander";

/// The agents that run on the native loop: a session may go from one to another.
pub const FAMILY: &str = "native";

/// One agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// Its name.
    pub name: String,
    /// For people.
    pub title: String,
    /// One paragraph for people.
    pub description: String,
    /// The id of its default mode; absent: its first.
    pub default: Option<String>,
    /// Other names that it answers to.
    pub aliases: Vec<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Its modes.
    pub modes: Vec<Arc<ModeSpec>>,
}

/// One way an agent works.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSpec {
    /// Its agent.
    pub agent: String,
    /// Its id.
    pub id: String,
    /// For people.
    pub name: String,
    /// One sentence for people.
    pub description: String,
    /// What kind of work it is.
    pub category: Category,
    /// What the model is told.
    pub instructions: String,
    /// What it may use.
    pub groups: Vec<Group>,
    /// The most that may run unasked, whatever the session allows.
    pub policy: Policy,
    /// Who answers best: `provider/model`, or `fast` or `strong` as the owner set them.
    pub model: Option<String>,
    /// The mode that carries out what was approved here.
    pub then: Option<String>,
    /// Words of a prompt that point here.
    pub words: Vec<String>,
}

impl ModeSpec {
    /// Those of the tools that it offers. A group whose tools are not there offers nothing.
    pub fn filter_tools<'a>(&self, tools: &'a [ListedTool]) -> impl Iterator<Item = &'a ListedTool> {
        tools.iter().filter(|tool| self.offers_group(tool.group))
    }

    /// True if it offers tools of this group.
    pub fn offers_group(&self, group: Group) -> bool {
        self.groups.iter().any(|named| named.includes(group))
    }

    /// What may run unasked in a session of this policy.
    pub fn limit_policy(&self, policy: Policy) -> Policy {
        policy.min(self.policy)
    }
}

impl AgentSpec {
    /// Its default mode; `None` if it has none at all.
    pub fn default_mode(&self) -> Option<&Arc<ModeSpec>> {
        let named = self.default.as_ref().and_then(|id| self.modes.iter().find(|mode| mode.id == *id));
        named.or_else(|| self.modes.first())
    }
}

#[cfg(test)]
mod tests;
