//! All agents of the native loop: the built-in ones, with further files laid over them.

use std::sync::Arc;

use gander_domain::{AgentManifest, Capability, Mode, Settings};

use super::mode_file::{BadFile, ModeFile, ParsedFile, parse_mode_file};
use super::{AgentSpec, FAMILY, ModeSpec, builtin};

/// All agents. The first serves whoever names none.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSet {
    agents: Vec<AgentSpec>,
}

impl ModeSet {
    /// The built-in agents.
    pub fn built_in() -> Self {
        let mut modes = Self { agents: Vec::new() };
        let wrong = modes.add_files(&builtin::builtin_mode_files());
        debug_assert_eq!(wrong, [], "a built-in file cannot be read");
        modes
    }

    /// Lays files over what is there: a file of the same place takes its place. Gives back those that are wrong.
    pub fn add_files(&mut self, mode_files: &[ModeFile]) -> Vec<BadFile> {
        let mut wrong = Vec::new();
        for page in mode_files {
            match parse_mode_file(page) {
                Ok(described) => self.add_parsed_file(described),
                Err(bad) => wrong.push(bad),
            }
        }
        // An agent is there for its modes.
        self.agents.retain(|agent| !agent.modes.is_empty());
        wrong
    }

    /// The agents, the default first.
    pub fn agent_specs(&self) -> &[AgentSpec] {
        &self.agents
    }

    /// The mode that a session is set to. What is not there any more is the default.
    pub fn selected_mode(&self, settings: &Settings) -> Arc<ModeSpec> {
        let agent = self.agents.iter().find(|agent| agent.name == settings.agent).or_else(|| self.agents.first());
        let named = |agent: &'_ AgentSpec| agent.modes.iter().find(|mode| mode.id == settings.mode).cloned();
        let mode = agent.and_then(|agent| named(agent).or_else(|| agent.default_mode().cloned()));
        mode.expect("what is built in cannot be taken away, and an agent without a mode is none")
    }

    /// The agents as every door shows them.
    pub fn agent_manifests(&self) -> impl Iterator<Item = AgentManifest> {
        self.agents.iter().map(mode_set_manifest)
    }

    fn add_parsed_file(&mut self, described: ParsedFile) {
        match described {
            ParsedFile::Agent(spec) => {
                let agent = self.find_or_add_agent(&spec.name);
                let modes = std::mem::take(&mut agent.modes);
                *agent = AgentSpec { modes, ..spec };
            }
            ParsedFile::Whole(spec) => {
                let agent = self.find_or_add_agent(&spec.name);
                *agent = spec;
            }
            ParsedFile::Mode(mode) => {
                let modes = &mut self.find_or_add_agent(&mode.agent).modes;
                match modes.iter_mut().find(|known| known.id == mode.id) {
                    Some(known) => *known = Arc::new(mode),
                    None => modes.push(Arc::new(mode)),
                }
            }
        }
    }

    /// The agent of this name, made if there is none.
    fn find_or_add_agent(&mut self, name: &str) -> &mut AgentSpec {
        let known = self.agents.iter().position(|agent| agent.name == name);
        let place = known.unwrap_or(self.agents.len());
        if known.is_none() {
            let (name, title) = (name.to_owned(), name.to_owned());
            let (aliases, tags, modes) = (Vec::new(), Vec::new(), Vec::new());
            let description = String::new();
            self.agents.push(AgentSpec { name, title, description, default: None, aliases, tags, modes });
        }
        &mut self.agents[place]
    }
}

/// The default mode comes first there.
fn mode_set_manifest(agent: &AgentSpec) -> AgentManifest {
    let default = agent.default_mode().map(|mode| mode.id.clone());
    let is_default = |mode: &&Arc<ModeSpec>| Some(&mode.id) == default.as_ref();
    let first = agent.modes.iter().filter(is_default);
    let others = agent.modes.iter().filter(|mode| !is_default(mode));
    let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
    AgentManifest {
        modes: first.chain(others).map(|mode| mode_set_mode(mode)).collect(),
        takes: types(&[
            "text/plain",
            "text/markdown",
            "application/json",
            "image/png",
            "image/jpeg",
            "image/gif",
            "image/webp",
        ]),
        gives: types(&["text/plain", "text/markdown"]),
        capabilities: CAPABILITIES.iter().map(mode_set_capability).collect(),
        tags: agent.tags.clone(),
        aliases: agent.aliases.clone(),
        family: Some(FAMILY.to_owned()),
        ..AgentManifest::new(&agent.name, &agent.title, &agent.description)
    }
}

/// What they can do: a name and a sentence each.
const CAPABILITIES: &[(&str, &str)] = &[
    ("Files", "Reads, searches, writes and edits files of its workspace"),
    ("Commands", "Runs commands, and asks before it does what cannot be undone"),
    ("Web", "Fetches mode_files"),
    ("Plans", "Keeps a plan of what it does"),
];

fn mode_set_capability((name, description): &(&str, &str)) -> Capability {
    Capability { name: (*name).to_owned(), description: (*description).to_owned() }
}

fn mode_set_mode(mode: &ModeSpec) -> Mode {
    Mode {
        id: mode.id.clone(),
        name: mode.name.clone(),
        description: mode.description.clone(),
        category: mode.category,
    }
}
