//! What an agent says it offers when a session is opened, and later: modes, models, config options and slash commands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::{
    AgentModels, AgentOption, Mode, ModeCategory, ModelChoice, OptionChoice, SlashCommand, SlashCommandKind, sanitize,
};
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
        let modes = learned_modes(&offered["modes"]);
        self.update(|offers| {
            offers.modes = modes;
            set_options(offers, &offered["configOptions"]);
        });
    }

    /// The agent told its config options anew.
    pub(super) fn learn_options(&self, options: &Value) {
        self.update(|offers| set_options(offers, options));
    }

    /// The agent told which commands it carries out.
    pub(super) fn learn_commands(&self, available: &Value) {
        let commands = learned_items(available).filter_map(learned_command).collect();
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
fn learned_modes(state: &Value) -> Vec<Mode> {
    let mode = |mode: &Value| {
        let name = mode["name"].as_str().or_else(|| mode["id"].as_str());
        Some(Mode {
            id: mode["id"].as_str()?.to_owned(),
            name: sanitize::sanitized_line(name.unwrap_or_default()),
            description: sanitize::sanitized_line(mode["description"].as_str().unwrap_or_default()),
            category: ModeCategory::Session,
        })
    };
    let mut modes: Vec<Mode> = learned_items(&state["availableModes"]).filter_map(mode).collect();
    modes.sort_by_key(|mode| state["currentModeId"] != *mode.id);
    if !modes.is_empty() && modes.iter().all(|mode| mode.id != DEFAULT_MODE) {
        let description = format!("As the agent begins: {}", modes[0].name);
        let (id, name) = (DEFAULT_MODE.to_owned(), "Default".to_owned());
        modes.insert(0, Mode { id, name, description, category: ModeCategory::Session });
    }
    modes
}

fn set_options(offers: &mut AgentOffers, options: &Value) {
    offers.models = learned_models(options);
    // Agents that have modes repeat them as an option, for clients that know options only.
    let is_shown_otherwise = |option: &Value| match option["category"].as_str() {
        Some("model") => true,
        Some("mode") => !offers.modes.is_empty(),
        Some(_) | None => false,
    };
    offers.options =
        learned_items(options).filter(|option| !is_shown_otherwise(option)).filter_map(read_agent_option).collect();
}

/// The choices of the config option for models.
fn learned_models(options: &Value) -> AgentModels {
    let Some(option) = learned_items(options).find(|option| option["category"] == "model") else {
        return AgentModels::default();
    };
    let choices = read_choices(&option["options"]).into_iter();
    let models = choices.map(|choice| ModelChoice { id: choice.value, name: choice.name }).collect();
    AgentModels { models, default_model: option["currentValue"].as_str().map(str::to_owned) }
}

/// An option with choices, or a switch, which has two.
fn read_agent_option(option: &Value) -> Option<AgentOption> {
    let text = |key: &str| sanitize::sanitized_line(option[key].as_str().unwrap_or_default());
    let (default_value, choices) = match option["currentValue"].as_bool() {
        Some(on) => (on.to_string(), [("true", "On"), ("false", "Off")].map(switch_choice).into()),
        None => (option["currentValue"].as_str()?.to_owned(), read_choices(&option["options"])),
    };
    Some(AgentOption {
        id: option["id"].as_str()?.to_owned(),
        name: text("name"),
        description: text("description"),
        category: option["category"].as_str().map(str::to_owned),
        default_value,
        choices,
    })
}

fn switch_choice((value, name): (&str, &str)) -> OptionChoice {
    OptionChoice { value: value.to_owned(), name: name.to_owned() }
}

/// The choices of an option, which may be in groups.
fn read_choices(options: &Value) -> Vec<OptionChoice> {
    let read = |choice: &Value| match choice["value"].as_str() {
        Some(value) => {
            let name = sanitize::sanitized_line(choice["name"].as_str().unwrap_or(value));
            vec![OptionChoice { value: value.to_owned(), name }]
        }
        None => read_choices(&choice["options"]),
    };
    learned_items(options).flat_map(read).take(MAX_ITEMS).collect()
}

fn learned_command(command: &Value) -> Option<SlashCommand> {
    let text = |value: &Value| sanitize::sanitized_line(value.as_str().unwrap_or_default());
    let name = command["name"].as_str()?.trim_start_matches('/').to_owned();
    let hint = text(&command["input"]["hint"]);
    Some(SlashCommand { kind: SlashCommandKind::Agent, name, description: text(&command["description"]), hint })
}

fn learned_items(list: &Value) -> impl Iterator<Item = &Value> {
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
        let mode = json!({ "id": "mode", "category": "mode", "currentValue": "b", "options": [{ "value": "b" }] });
        let switch = json!({ "id": "web", "name": "Web", "type": "boolean", "currentValue": true });
        let offered = json!({ "modes": modes, "configOptions": [option, mode, switch] });
        learned.learn_session(&offered);
        learned.learn_session(&offered);
        learned.learn_commands(&json!([{ "name": "init", "description": "Begin", "input": { "hint": "what" } }]));
        let offers = learned.current().unwrap_or_default();
        let ids: Vec<&str> = offers.modes.iter().map(|mode| mode.id.as_str()).collect();
        assert_eq!((offers.generation, ids), (2, vec!["default", "b", "a"]));
        let models: Vec<&str> = offers.models.models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!((models, offers.models.default_model.as_deref()), (vec!["x", "y"], Some("x")));
        let options: Vec<_> = offers.options.iter().map(|option| (&*option.id, &*option.default_value)).collect();
        assert_eq!(options, [("web", "true")]);
        assert_eq!((offers.commands[0].name.as_str(), offers.commands[0].hint.as_str()), ("init", "what"));
    }
}
