//! The names under which agents and their modes are asked for, the same at every door.

use std::sync::Arc;

use crate::{AgentManifest, Mode, ModeCategory, Routing, Settings, SettingsPatch};

/// The name that leaves the mode to the prompt.
pub const AUTO: &str = "auto";

/// All agents, and every way in which one of them works. The first agent serves whoever names none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roster {
    agents: Vec<Arc<AgentManifest>>,
    ways: Vec<AgentMode>,
}

/// One agent in one of its modes.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentMode {
    /// Means this agent in this mode and nothing else.
    pub name: String,
    /// The agent.
    pub agent: Arc<AgentManifest>,
    /// The mode.
    pub mode: Mode,
}

impl AgentMode {
    /// What changes in a session with these settings that is set to this. An agent is named only where it is another.
    pub fn settings_patch(&self, settings: &Settings) -> SettingsPatch {
        let agent = (self.agent.name != settings.agent).then(|| self.agent.name.clone());
        let mode = (agent.is_some() || self.mode.id != settings.mode).then(|| self.mode.id.clone());
        SettingsPatch { agent, mode, ..SettingsPatch::default() }
    }

    /// The mode as an agent of its own.
    pub fn agent_manifest(&self) -> AgentManifest {
        let agent = &self.agent;
        AgentManifest {
            name: self.name.clone(),
            title: self.mode.name.clone(),
            description: self.mode.description.clone(),
            modes: vec![self.mode.clone()],
            aliases: Vec::new(),
            ..AgentManifest::clone(agent)
        }
    }
}

impl Roster {
    /// These agents. A mode is called by its id, unless an agent or an earlier mode is called so: then the name of
    /// its agent stands before it. The only mode of an agent is called as the agent.
    pub fn new(agents: Vec<Arc<AgentManifest>>) -> Self {
        let mut ways: Vec<AgentMode> = Vec::new();
        for agent in &agents {
            for mode in &agent.modes {
                let name = roster_mode_name(&agents, &ways, agent, mode);
                ways.push(AgentMode { name, agent: Arc::clone(agent), mode: mode.clone() });
            }
        }
        Self { agents, ways }
    }

    /// All agents, the default first.
    pub fn agents(&self) -> &[Arc<AgentManifest>] {
        &self.agents
    }

    /// The agent of this name, in either spelling.
    pub fn find_agent(&self, name: &str) -> Option<&Arc<AgentManifest>> {
        let by_name = self.agents.iter().find(|agent| is_same_roster_name(&agent.name, name));
        by_name.or_else(|| {
            self.agents.iter().find(|agent| agent.aliases.iter().any(|alias| is_same_roster_name(alias, name)))
        })
    }

    /// Every way in which one of them works, agent by agent.
    pub fn agent_modes(&self) -> &[AgentMode] {
        &self.ways
    }

    /// What this name means, in either spelling: an agent in its default mode, or one of its modes.
    pub fn find_mode(&self, name: &str) -> Option<&AgentMode> {
        let default = |agent: &Arc<AgentManifest>| self.ways.iter().find(|way| Arc::ptr_eq(&way.agent, agent));
        let named = || self.ways.iter().find(|way| is_same_roster_name(&way.name, name));
        self.find_agent(name).and_then(default).or_else(named)
    }

    /// Every name with what it means: each agent, then each of its modes that has a name of its own.
    pub fn all_manifests(&self) -> Vec<Arc<AgentManifest>> {
        let own = |way: &&AgentMode| !self.agents.iter().any(|agent| agent.name == way.name);
        let modes = self.ways.iter().filter(own).map(|way| Arc::new(way.agent_manifest()));
        self.agents.iter().cloned().chain(modes).chain(self.auto_manifest().map(Arc::new)).collect()
    }

    /// What this name means, as an agent: see [`Roster::all_manifests`].
    pub fn find_manifest(&self, name: &str) -> Option<Arc<AgentManifest>> {
        let mode = || self.find_mode(name).map(AgentMode::agent_manifest);
        let auto = || self.auto_manifest().filter(|auto| auto.name == name);
        self.find_agent(name).cloned().or_else(|| mode().or_else(auto).map(Arc::new))
    }

    /// What this name changes in a session with these settings. The name of its own agent leaves it in its mode.
    pub fn patch_for_name(&self, name: &str, settings: &Settings) -> Option<SettingsPatch> {
        if self.find_agent(name).is_some_and(|agent| agent.name == settings.agent) {
            return Some(SettingsPatch::default());
        }
        let is_auto = name == AUTO && self.auto_manifest().is_some();
        let routing = (is_auto && settings.routing.is_off()).then_some(Routing::Rules);
        let auto = is_auto.then(|| SettingsPatch { routing, ..SettingsPatch::default() });
        self.find_mode(name).map(|way| way.settings_patch(settings)).or(auto)
    }

    /// These settings, for what this name means.
    pub fn settings_for_name(&self, name: &str, base: &Settings) -> Option<Settings> {
        let mut settings = base.clone();
        match self.find_mode(name) {
            Some(way) => (settings.agent, settings.mode) = (way.agent.name.clone(), way.mode.id.clone()),
            None => settings.apply_patch(&self.patch_for_name(name, base)?),
        }
        Some(settings)
    }

    /// The agents of one family, as one that picks the mode by the prompt.
    fn auto_manifest(&self) -> Option<AgentManifest> {
        let first = self.agents.first().filter(|agent| agent.family.is_some())?;
        let (title, description) = ("Auto", "Picks the agent and the mode that fit each prompt");
        let mode = Mode {
            id: AUTO.to_owned(),
            name: title.to_owned(),
            description: description.to_owned(),
            category: ModeCategory::Session,
        };
        Some(AgentManifest {
            name: AUTO.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            modes: vec![mode],
            aliases: Vec::new(),
            ..AgentManifest::clone(first)
        })
    }

    /// The way that these settings mean.
    pub fn current_mode(&self, settings: &Settings) -> Option<&AgentMode> {
        self.ways.iter().find(|way| way.agent.name == settings.agent && way.mode.id == settings.mode)
    }

    /// What a session with these settings may be set to without leaving the family of its agent.
    pub fn available_modes<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = &'a AgentMode> {
        let family = self.find_agent(&settings.agent).and_then(|agent| agent.family.as_ref());
        self.ways.iter().filter(move |way| {
            way.agent.name == settings.agent || (family.is_some() && way.agent.family.as_ref() == family)
        })
    }
}

/// True for two spellings of one name: `recipe_maker` and `recipe-maker`.
pub fn is_same_roster_name(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.bytes().zip(other.bytes()).all(|(one, other)| normalize_separator(one) == normalize_separator(other))
}

/// The name as a label of RFC 1123 spells it.
pub fn dns_label(name: &str) -> String {
    name.replace('_', "-")
}

/// The name as somebody spells it who asked for it; as a label if they asked by another name.
pub fn spell_as_requested(name: &str, asked: &str) -> String {
    if is_same_roster_name(name, asked) { asked.to_owned() } else { dns_label(name) }
}

/// True for a name that every door can spell.
pub fn is_valid_roster_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63 && name.bytes().all(fits) && edge(bytes.first()) && edge(bytes.last())
}

fn normalize_separator(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte }
}

fn roster_mode_name(agents: &[Arc<AgentManifest>], ways: &[AgentMode], agent: &AgentManifest, mode: &Mode) -> String {
    if agent.modes.len() == 1 {
        return agent.name.clone();
    }
    let label = mode_label(&mode.id);
    let called = |agent: &AgentManifest| {
        is_same_roster_name(&agent.name, &label) || agent.aliases.iter().any(|alias| is_same_roster_name(alias, &label))
    };
    let is_taken = label == AUTO
        || agents.iter().any(|agent| called(agent))
        || ways.iter().any(|way| is_same_roster_name(&way.name, &label));
    if is_taken { format!("{}-{label}", agent.name) } else { label }
}

/// The id of a mode as every protocol can spell it. Modes of other agents have ids such as `acceptEdits`, or addresses.
fn mode_label(id: &str) -> String {
    if is_valid_roster_name(id) {
        return id.to_owned();
    }
    let last = id.rsplit(['/', '#']).next().unwrap_or(id);
    let mut label = String::new();
    for letter in last.chars() {
        let begins_word = letter.is_ascii_uppercase() && !label.is_empty() && !label.ends_with('-');
        match (letter.is_ascii_alphanumeric(), begins_word || !letter.is_ascii_alphanumeric()) {
            (true, true) => label.extend(['-', letter.to_ascii_lowercase()]),
            (true, false) => label.push(letter.to_ascii_lowercase()),
            (false, _) if label.is_empty() || label.ends_with('-') => {}
            (false, _) => label.push('-'),
        }
    }
    let label = label[..label.floor_char_boundary(40)].trim_end_matches('-').to_owned();
    if label.is_empty() { "mode".to_owned() } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, modes: &[&str], family: Option<&str>) -> Arc<AgentManifest> {
        let mode = |id: &&str| Mode {
            id: (*id).to_owned(),
            name: id.to_uppercase(),
            description: String::new(),
            category: ModeCategory::Session,
        };
        Arc::new(AgentManifest {
            modes: modes.iter().map(mode).collect(),
            family: family.map(str::to_owned),
            ..AgentManifest::new(name, name, "")
        })
    }

    #[test]
    fn modes_of_other_agents_have_names_that_every_protocol_can_spell() {
        let labels = ["acceptEdits", "https://x.example/modes#agent", "Ask First!", "plan", "…"].map(mode_label);
        assert_eq!(labels, ["accept-edits", "agent", "ask-first", "plan", "mode"]);
        assert!(labels.iter().all(|label| is_valid_roster_name(label)));
    }

    #[test]
    fn a_name_means_one_agent_in_one_mode() {
        let mut first = AgentManifest::clone(&agent("gander", &["assistant", "app_maker"], Some("native")));
        first.aliases = vec!["goose".to_owned()];
        let others =
            [agent("coding", &["backend", "assistant", "coding"], Some("native")), agent("echo", &["x"], None)];
        let roster = Roster::new(std::iter::once(Arc::new(first)).chain(others).collect());
        let names: Vec<&str> = roster.agent_modes().iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names, ["assistant", "app_maker", "backend", "coding-assistant", "coding-coding", "echo"]);
        let found = |name: &str| roster.find_mode(name).map(|way| (way.agent.name.as_str(), way.mode.id.as_str()));
        assert_eq!(found("goose"), Some(("gander", "assistant")));
        assert_eq!(found("app-maker"), Some(("gander", "app_maker")));
        assert_eq!(found("coding"), Some(("coding", "backend")));
        assert_eq!(found("coding_assistant"), Some(("coding", "assistant")));
        assert_eq!((found("echo"), found("App-Maker"), found("")), (Some(("echo", "x")), None, None));
        let settings = |agent: &str| Settings::new(agent, "");
        assert_eq!(
            roster.patch_for_name("goose", &settings("gander")),
            Some(SettingsPatch::default()),
            "it stays in its mode"
        );
        let (agent, mode) = (Some("gander".to_owned()), Some("app_maker".to_owned()));
        let changed = SettingsPatch { agent, mode, ..SettingsPatch::default() };
        assert_eq!(roster.patch_for_name("app-maker", &settings("coding")), Some(changed));
        let flat: Vec<String> = roster.all_manifests().iter().map(|agent| agent.name.clone()).collect();
        let modes = ["assistant", "app_maker", "backend", "coding-assistant", "coding-coding"];
        assert_eq!(flat, [&["gander", "coding", "echo"][..], &modes, &["auto"]].concat());
        let auto = roster.settings_for_name("auto", &settings("gander")).map(|settings| settings.routing);
        assert_eq!((auto, found("auto")), (Some(Routing::Rules), None));
        assert_eq!(roster.available_modes(&settings("coding")).count(), 5);
        assert_eq!(roster.available_modes(&settings("echo")).count(), 1);
    }

    #[test]
    fn whoever_asks_is_answered_in_their_own_spelling() {
        let spell = |asked| spell_as_requested("app_maker", asked);
        assert_eq!([spell("app_maker"), spell("app-maker"), spell("apps")], ["app_maker", "app-maker", "app-maker"]);
    }

    #[test]
    fn every_name_can_be_spelled_as_a_label() {
        assert!(["a", "app_maker", "app-maker2", "7"].iter().all(|name| is_valid_roster_name(name)));
        assert!(
            !["", "-a", "a_", "A", "a.b", "a/b", "é", &"a".repeat(64)].iter().any(|name| is_valid_roster_name(name))
        );
    }
}
