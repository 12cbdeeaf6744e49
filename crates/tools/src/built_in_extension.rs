//! Built-in extensions: tools of our own that are switched on and off together, by the names that goose's users know.

use std::collections::BTreeSet;

use crate::Group;

/// Tools of our own that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuiltIn {
    /// Files, search, commands and the web.
    Developer,
    /// The plan.
    Todo,
    /// Skills.
    Skills,
    /// Apps.
    Apps,
    /// Sub-agents.
    Summon,
    /// What agents were asked to remember.
    Memory,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Developer, Self::Todo, Self::Skills, Self::Apps, Self::Summon, Self::Memory];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::Todo => "todo",
            Self::Skills => "skills",
            Self::Apps => "apps",
            Self::Summon => "summon",
            Self::Memory => "memory",
        }
    }

    /// One line for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Developer => "Files, search, commands and the web",
            Self::Todo => "A to-do list that clients show",
            Self::Skills => "Instructions for kinds of tasks, loaded when they are needed",
            Self::Apps => "Creates, changes and stores small web pages",
            Self::Summon => "Sub-agents for parts of the work",
            Self::Memory => "Remembers facts, everywhere or in one project",
        }
    }

    /// The one of this name, as people write it: case and blanks do not count.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == normalized_extension_name(name))
    }

    /// True if it is on where nobody says anything.
    pub fn is_default(self) -> bool {
        self != Self::Memory
    }

    /// The extension that a group's tools belong to, if any.
    pub fn of_group(group: Group) -> Option<Self> {
        match group {
            Group::Look | Group::Edit | Group::Run | Group::Web => Some(Self::Developer),
            Group::Plan => Some(Self::Todo),
            Group::Skills => Some(Self::Skills),
            Group::Apps => Some(Self::Apps),
            Group::Delegate => Some(Self::Summon),
            Group::Memory => Some(Self::Memory),
            Group::All | Group::Propose | Group::Artifacts | Group::Recipes | Group::Mcp | Group::Resources => None,
        }
    }
}

/// Why there is no built-in extension of this name, and what to do instead.
pub fn extension_absence_reason(name: &str) -> String {
    let instead = match normalized_extension_name(name).as_str() {
        "extensionmanager" => "people add and remove extensions, with `gander extensions` or in their client",
        "chatrecall" => "an agent sees its own session alone; memory keeps what should outlive it",
        "computercontroller" => {
            "developer runs commands and fetches pages; to steer a desktop add an MCP server that does"
        }
        "autovisualiser" => "the mode app_maker makes pages with charts",
        "tutorial" => "a skill or a recipe can teach",
        "analyze" => "developer reads and searches files",
        "tom" => "what AGENTS.md says is told in every turn",
        "codeexecution" => "developer runs commands",
        "orchestrator" => "summon has sub-agents, and the mode auto splits requests",
        _ => "to add an MCP server give its program or its url",
    };
    let known = BuiltIn::ALL.map(BuiltIn::name).join(", ");
    format!("no such built-in extension (there are: {known}), {instead}: {name}")
}

/// Which of them are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIns(BTreeSet<BuiltIn>);

impl BuiltIns {
    /// True if it is on.
    pub fn is_enabled(&self, built_in: BuiltIn) -> bool {
        self.0.contains(&built_in)
    }

    /// True if tools of our own of this group may be used: those that belong to no extension always may.
    pub fn offers_group(&self, group: Group) -> bool {
        BuiltIn::of_group(group).is_none_or(|known| self.is_enabled(known))
    }

    /// Those that are on.
    pub fn iter(&self) -> impl Iterator<Item = BuiltIn> {
        self.0.iter().copied()
    }
}

impl Default for BuiltIns {
    /// The usual ones.
    fn default() -> Self {
        BuiltIn::ALL.into_iter().filter(|known| known.is_default()).collect()
    }
}

impl FromIterator<BuiltIn> for BuiltIns {
    fn from_iter<I: IntoIterator<Item = BuiltIn>>(on: I) -> Self {
        Self(on.into_iter().collect())
    }
}

fn normalized_extension_name(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, ' ' | '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Toolbox};

    #[test]
    fn every_tool_belongs_to_one_of_them() {
        let tools = Toolbox::builtin(Limits::default()).listed_tools();
        let free = tools.iter().filter(|tool| BuiltIn::of_group(tool.group).is_none());
        assert_eq!(free.map(|tool| tool.spec.name.clone()).collect::<Vec<_>>(), Vec::<String>::new());
    }

    #[test]
    fn what_is_off_offers_nothing() {
        let only: BuiltIns = [BuiltIn::Todo].into_iter().collect();
        assert!(
            only.offers_group(Group::Plan) && only.offers_group(Group::Artifacts) && !only.offers_group(Group::Run)
        );
        assert!(BuiltIns::default().offers_group(Group::Run) && !BuiltIns::default().offers_group(Group::Memory));
    }

    #[test]
    fn names_are_read_as_people_write_them_and_absence_is_explained() {
        assert_eq!(BuiltIn::from_name("Developer"), Some(BuiltIn::Developer));
        assert_eq!(BuiltIn::from_name("computercontroller"), None);
        assert!(extension_absence_reason("Extension Manager").contains("gander extensions"));
        assert!(extension_absence_reason("nothing").ends_with("give its program or its url: nothing"));
    }
}
