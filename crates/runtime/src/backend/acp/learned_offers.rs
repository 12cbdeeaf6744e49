//! What an agent says it offers when a session is opened, and later: modes, models and slash commands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::{AgentModels, Mode, ModeCategory, ModelChoice, SlashCommand, SlashCommandKind, sanitize};
use serde_json::Value;

use crate::backend::AgentOffers;

/// The mode of sessions that chose none, where the agent has none of this name.
pub(super) const DEFAULT_MODE: &str = "default";
/// So much of one list is kept.
const MAX_ITEMS: usize = 200;

/// What an agent said last. All sessions of an agent share it.
#[derive(Default)]
pub(super) struct LearnedOffers(Mutex<Option<Arc<AgentOffers>>>);

impl LearnedOffers {
    pub(super) fn current(&self) -> Option<Arc<AgentOffers>> {
        self.lock().clone()
    }

    /// A session was opened: its answer names modes and config options.
    pub(super) fn learn_session(&self, offered: &Value) {
        let (modes, models) = (read_modes(&offered["modes"]), read_models(&offered["configOptions"]));
        self.update(|offers| (offers.modes, offers.models) = (modes, models));
    }

    /// The agent told which commands it carries out.
    pub(super) fn learn_commands(&self, available: &Value) {
        let commands = items(available).filter_map(read_command).collect();
        self.update(|offers| offers.commands = commands);
    }

    fn update(&self, change: impl FnOnce(&mut AgentOffers)) {
        let mut current = self.lock();
        let before = current.as_deref().cloned().unwrap_or_default();
        let mut offers = before.clone();
        change(&mut offers);
        if offers != before {
            offers.generation += 1;
            *current = Some(Arc::new(offers));
        }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<AgentOffers>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agent's modes, that of new sessions first; before them our name for it, unless the agent has one of that name.
fn read_modes(state: &Value) -> Vec<Mode> {
    let mode = |mode: &Value| {
        let name = mode["name"].as_str().or_else(|| mode["id"].as_str());
        Some(Mode {
            id: mode["id"].as_str()?.to_owned(),
            name: sanitize::visible_line(name.unwrap_or_default()),
            description: sanitize::visible_line(mode["description"].as_str().unwrap_or_default()),
            category: ModeCategory::Session,
        })
    };
    let mut modes: Vec<Mode> = items(&state["availableModes"]).filter_map(mode).collect();
    modes.sort_by_key(|mode| state["currentModeId"] != *mode.id);
    if !modes.is_empty() && modes.iter().all(|mode| mode.id != DEFAULT_MODE) {
        let description = format!("As the agent begins: {}", modes[0].name);
        let (id, name) = (DEFAULT_MODE.to_owned(), "Default".to_owned());
        modes.insert(0, Mode { id, name, description, category: ModeCategory::Session });
    }
    modes
}

/// The choices of the config option for models, which may be in groups.
fn read_models(options: &Value) -> AgentModels {
    let Some(option) = items(options).find(|option| option["category"] == "model") else {
        return AgentModels::default();
    };
    let mut models = Vec::new();
    collect_choices(&option["options"], &mut models);
    AgentModels { models, default_model: option["currentValue"].as_str().map(str::to_owned) }
}

fn collect_choices(options: &Value, models: &mut Vec<ModelChoice>) {
    for choice in items(options) {
        match choice["value"].as_str() {
            Some(id) => {
                let name = sanitize::visible_line(choice["name"].as_str().unwrap_or(id));
                models.push(ModelChoice { id: id.to_owned(), name });
            }
            None => collect_choices(&choice["options"], models),
        }
    }
}

fn read_command(command: &Value) -> Option<SlashCommand> {
    let text = |value: &Value| sanitize::visible_line(value.as_str().unwrap_or_default());
    let name = command["name"].as_str()?.trim_start_matches('/').to_owned();
    let hint = text(&command["input"]["hint"]);
    Some(SlashCommand { kind: SlashCommandKind::Agent, name, description: text(&command["description"]), hint })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(MAX_ITEMS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn modes_models_and_commands_are_learned_and_counted_when_they_change() {
        let learned = LearnedOffers::default();
        let modes =
            json!({ "currentModeId": "b", "availableModes": [{ "id": "a", "name": "A" }, { "id": "b", "name": "B" }] });
        let group = json!({ "name": "group", "options": [{ "value": "y", "name": "Y" }] });
        let option =
            json!({ "id": "model", "category": "model", "currentValue": "x", "options": [{ "value": "x" }, group] });
        let offered = json!({ "modes": modes, "configOptions": [option] });
        learned.learn_session(&offered);
        learned.learn_session(&offered);
        learned.learn_commands(&json!([{ "name": "init", "description": "Begin", "input": { "hint": "what" } }]));
        let offers = learned.current().unwrap_or_default();
        let ids: Vec<&str> = offers.modes.iter().map(|mode| mode.id.as_str()).collect();
        assert_eq!((offers.generation, ids), (2, vec!["default", "b", "a"]));
        let models: Vec<&str> = offers.models.models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!((models, offers.models.default_model.as_deref()), (vec!["x", "y"], Some("x")));
        assert_eq!((offers.commands[0].name.as_str(), offers.commands[0].hint.as_str()), ("init", "what"));
    }
}
