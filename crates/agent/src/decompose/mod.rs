//! Compound requests taken apart: by their words, or by asking a model. A simple request stays whole.

mod clauses;
mod heuristic;
mod llm;
mod verbs;

use gander_domain::{Route, Routing, Settings};
use gander_tools::Group;
use serde_json::{Value, json};

use crate::delegate::SubTask;
use crate::modes::{ModeSet, ModeSpec};
use crate::route;

pub use heuristic::decompose_by_words;
pub use llm::decompose_by_model;

/// A prompt longer than this is not taken apart: it is material rather than a list of wishes.
const MAX_PROMPT_BYTES: usize = 20_000;

/// What somebody who looked at a request found.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// What it consists of; empty: it is one request.
    pub tasks: Vec<SubTask>,
    /// How sure that is, of a hundred.
    pub confidence: u8,
    /// Why, for people.
    pub reasons: Vec<String>,
    /// Who looked.
    pub by: Routing,
}

impl Decomposition {
    fn undivided(by: Routing, why: impl Into<String>) -> Self {
        Self { tasks: Vec::new(), confidence: 0, reasons: vec![why.into()], by }
    }

    /// True if the request is several.
    pub fn is_compound(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The arguments of the call of `delegate` that has it carried out.
    pub fn as_tool_arguments(&self) -> Value {
        let task = |task: &SubTask| {
            let mut fields = json!({ "name": task.name, "prompt": task.prompt });
            if let Some(mode) = &task.mode {
                fields["mode"] = json!(mode);
            }
            if !task.after.is_empty() {
                fields["after"] = json!(task.after);
            }
            fields
        };
        json!({ "tasks": self.tasks.iter().map(task).collect::<Vec<_>>() })
    }

    /// Who hands the parts out and joins what comes back: whoever is there, else the default. None if neither has sub-agents.
    pub fn delegating_route(&self, modes: &ModeSet, settings: &Settings) -> Option<Route> {
        let default = modes.agent_specs().first().and_then(|agent| agent.default_mode()).cloned();
        let mode = std::iter::once(modes.selected_mode(settings))
            .chain(default)
            .find(|mode| mode.offers_group(Group::Delegate))?;
        let (agent, mode) = (mode.agent.clone(), mode.id.clone());
        Some(Route { agent, mode, confidence: self.confidence, reasons: self.reasons.clone(), by: self.by })
    }
}

/// The mode that fits a part; none: a specialist, also in place of whoever would take anything. Who only judges, or waits for
/// an approval, carries nothing out.
fn decomposed_text_mode(modes: &ModeSet, text: &str) -> Option<String> {
    let route = route::route_by_words(modes, &Settings::new(crate::modes::AGENT, ""), text);
    let mode = modes
        .agent_specs()
        .iter()
        .flat_map(|agent| &agent.modes)
        .find(|mode| is_route_of_decomposition(mode, &route))?;
    let works = !mode.groups.is_empty() && !mode.groups.contains(&Group::Propose);
    let special = !mode.groups.contains(&Group::All);
    (works && special).then(|| mode.id.clone())
}

fn is_route_of_decomposition(mode: &ModeSpec, route: &Route) -> bool {
    mode.agent == route.agent && mode.id == route.mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::ModeFile;

    #[test]
    fn whoever_has_sub_agents_joins_what_they_give() {
        let mut modes = ModeSet::built_in();
        let split = decompose_by_words(&modes, "- Read the one file\n- Read the other file");
        let joins = |modes: &ModeSet, mode: &str| {
            split.delegating_route(modes, &Settings::new("coding", mode)).map(|route| (route.agent, route.mode))
        };
        let named = |agent: &str, mode: &str| Some((agent.to_owned(), mode.to_owned()));
        assert_eq!(joins(&modes, "backend"), named("coding", "backend"));
        assert_eq!(joins(&modes, "pm"), named("gander", "assistant"), "who has none hands over");
        let text = "---\ntitle: Mine\ntools: [look]\n---\nOnly look.\n".to_owned();
        modes.add_files(&[ModeFile { path: "gander/assistant.md".to_owned(), text }]);
        assert_eq!(joins(&modes, "pm"), None, "nobody is there who could");
    }
}
