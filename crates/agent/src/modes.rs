//! The native agent and its modes, as data.

use std::sync::Arc;

use gander_domain::{AgentManifest, Capability, Mode};

use crate::model::ToolSpec;

/// The native agent's name.
pub const AGENT: &str = "gander";

/// One way the native agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSpec {
    /// Its id.
    pub id: &'static str,
    /// For people.
    pub name: &'static str,
    /// One sentence for people.
    pub description: &'static str,
    /// What the model is told.
    pub instructions: &'static str,
    /// What it may use.
    pub tools: ToolAccess,
}

/// Which tools a mode offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// All there are.
    All,
    /// These, by name.
    Only(&'static [&'static str]),
}

/// The modes; the first is the default.
pub const MODES: &[ModeSpec] = &[
    ModeSpec {
        id: "assistant",
        name: "Assistant",
        description: "Answers questions and does the work: reads, edits, runs commands",
        instructions: "Do the work yourself with the tools you have, check that it came out right, and report what \
                       you did. For anything of more than two steps keep a plan with the plan tool.",
        tools: ToolAccess::All,
    },
    ModeSpec {
        id: "planner",
        name: "Planner",
        description: "Looks around and writes a plan, changes nothing",
        instructions: "Only look; change nothing. Study what is there, then put a plan of small verifiable steps \
                       into the plan tool and explain its reasons and risks. Name the files each step touches. \
                       Somebody else will carry it out.",
        tools: ToolAccess::Only(&["read", "list", "grep", "fetch", "plan", "skill"]),
    },
];

/// The native agent as every door shows it.
pub fn manifest() -> AgentManifest {
    let description = "The built-in agent: any model, with tools for files, search, commands, the web and plans.";
    let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
    AgentManifest {
        modes: MODES.iter().map(shown).collect(),
        takes: types(&["text/plain", "text/markdown", "application/json", "image/png", "image/jpeg"]),
        gives: types(&["text/plain", "text/markdown"]),
        capabilities: CAPABILITIES.iter().map(capability).collect(),
        tags: types(&["coding", "general"]),
        ..AgentManifest::new(AGENT, "Gander", description)
    }
}

/// What it can do: a name and a sentence each.
const CAPABILITIES: &[(&str, &str)] = &[
    ("Files", "Reads, searches, writes and edits files of its workspace"),
    ("Commands", "Runs commands, and asks before it does what cannot be undone"),
    ("Web", "Fetches pages"),
    ("Plans", "Keeps a plan of what it does"),
];

fn capability((name, description): &(&str, &str)) -> Capability {
    Capability { name: (*name).to_owned(), description: (*description).to_owned() }
}

/// The mode with this id, or the default one.
pub fn mode(id: &str) -> &'static ModeSpec {
    MODES.iter().find(|mode| mode.id == id).unwrap_or(&MODES[0])
}

impl ModeSpec {
    /// Those of the tools that it offers.
    pub fn offers(&self, tools: &Arc<[ToolSpec]>) -> Arc<[ToolSpec]> {
        match self.tools {
            ToolAccess::All => Arc::clone(tools),
            ToolAccess::Only(names) => {
                tools.iter().filter(|tool| names.contains(&tool.name.as_str())).cloned().collect()
            }
        }
    }
}

fn shown(mode: &ModeSpec) -> Mode {
    Mode { id: mode.id.to_owned(), name: mode.name.to_owned(), description: mode.description.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec { name: name.to_owned(), description: String::new(), schema: serde_json::json!({}) }
    }

    #[test]
    fn a_planner_cannot_write() {
        let all: Arc<[ToolSpec]> = ["read", "write", "edit", "shell", "plan", "from_elsewhere"].map(tool).into();
        let names = |mode: &str| -> Vec<String> {
            super::mode(mode).offers(&all).iter().map(|tool| tool.name.clone()).collect()
        };
        assert_eq!(names("planner"), ["read", "plan"]);
        assert_eq!(names("assistant").len(), 6);
        assert_eq!(super::mode("unheard_of").id, "assistant");
    }

    #[test]
    fn names_are_of_the_agreed_alphabet() {
        let manifest = manifest();
        let ids = manifest.modes.iter().map(|mode| &mode.id).chain([&manifest.name]);
        for id in ids {
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'), "{id}");
        }
    }
}
