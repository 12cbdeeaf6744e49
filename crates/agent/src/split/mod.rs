//! Compound requests taken apart: by their words, or by asking a model. A simple request stays whole.

mod judged;
mod pieces;
mod verbs;
mod words;

use gander_domain::{Route, Routing, Settings};
use gander_tools::Group;
use serde_json::{Value, json};

use crate::delegate::{self, SubTask};
use crate::modes::{Library, ModeSpec};
use crate::route;

pub use judged::judged;
pub use words::by_words;

/// A prompt longer than this is not taken apart: it is material rather than a list of wishes.
const LONGEST: usize = 20_000;

/// What somebody who looked at a request found.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// What it consists of; empty: it is one request.
    pub tasks: Vec<SubTask>,
    /// How sure that is, of a hundred.
    pub confidence: u8,
    /// Why, for people.
    pub reasons: Vec<String>,
    /// Who looked.
    pub by: Routing,
}

impl Split {
    fn whole(by: Routing, why: impl Into<String>) -> Self {
        Self { tasks: Vec::new(), confidence: 0, reasons: vec![why.into()], by }
    }

    /// True if the request is several.
    pub fn is_compound(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The arguments of the call of `delegate` that has it carried out.
    pub fn arguments(&self) -> Value {
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
    pub fn route(&self, library: &Library, settings: &Settings) -> Option<Route> {
        let default = library.agents().first().and_then(|agent| agent.default_mode()).cloned();
        let mode = std::iter::once(library.mode(settings)).chain(default).find(|mode| mode.has(delegate::NAME))?;
        let (agent, mode) = (mode.agent.clone(), mode.id.clone());
        Some(Route { agent, mode, confidence: self.confidence, reasons: self.reasons.clone(), by: self.by })
    }
}

/// The mode that fits a part; none: a specialist, also in place of whoever would take anything. Who only judges, or waits for
/// an approval, carries nothing out.
fn mode_of(library: &Library, text: &str) -> Option<String> {
    let route = route::by_words(library, &Settings::new(crate::modes::AGENT, ""), text);
    let mode = library.agents().iter().flat_map(|agent| &agent.modes).find(|mode| is(mode, &route))?;
    let works = !mode.groups.is_empty() && !mode.groups.contains(&Group::Propose);
    let special = !mode.groups.contains(&Group::All);
    (works && special).then(|| mode.id.clone())
}

fn is(mode: &ModeSpec, route: &Route) -> bool {
    mode.agent == route.agent && mode.id == route.mode
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::Page;

    #[test]
    fn whoever_has_sub_agents_joins_what_they_give() {
        let mut library = Library::built_in();
        let split = by_words(&library, "- Read the one file\n- Read the other file");
        let joins = |library: &Library, mode: &str| {
            split.route(library, &Settings::new("coding", mode)).map(|route| (route.agent, route.mode))
        };
        let named = |agent: &str, mode: &str| Some((agent.to_owned(), mode.to_owned()));
        assert_eq!(joins(&library, "backend"), named("coding", "backend"));
        assert_eq!(joins(&library, "pm"), named("gander", "assistant"), "who has none hands over");
        let text = "---\ntitle: Mine\ntools: [look]\n---\nOnly look.\n".to_owned();
        library.lay(&[Page { path: "gander/assistant.md".to_owned(), text }]);
        assert_eq!(joins(&library, "pm"), None, "nobody is there who could");
    }
}
