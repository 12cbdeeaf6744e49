//! A session's settings as modes and config options, and back.

use gander_domain::roster::is_same_roster_name;
use gander_domain::{AgentMode, AgentOption, Effort, Policy, Routing, SessionCatalog, Settings, SettingsPatch};

use serde_json::{Map, Value};

use super::limit_options::{self, limit_select_choice};
use super::schema::{SessionConfigOption, SessionConfigOptionCategory, SessionMode, SessionModeState};
use crate::goose;
use crate::jsonrpc::Error;

/// Choices that an error lists.
const MAX_NAMED_CHOICES: usize = 40;

/// Of a value that is not known no more than this is told back.
const MAX_QUOTED: usize = 64;

const AGENT: &str = "agent";
const MODE: &str = "mode";
const MODEL: &str = "model";
const EFFORT: &str = "thought_level";
const POLICY: &str = "policy";
const ROUTING: &str = "routing";

/// The current mode and all that can be chosen.
pub fn mode_option_state(catalog: &SessionCatalog, settings: &Settings) -> Option<SessionModeState> {
    let mode = |way: &AgentMode| {
        let mode = SessionMode::new(way.name.clone(), way.mode.name.clone());
        mode.description(way.mode.description.clone()).meta(mode_option_category_meta(way))
    };
    let modes: Vec<_> = catalog.roster.available_modes(settings).map(mode).collect();
    (!modes.is_empty()).then(|| SessionModeState::new(current_mode_option(catalog, settings), modes))
}

/// What kind of work a mode is made for, which the protocol has no field for.
fn mode_option_category_meta(way: &AgentMode) -> Map<String, Value> {
    Map::from_iter([("category".to_owned(), Value::from(way.mode.category.name()))])
}

/// The name of the mode that a session is in, among those that it can be set to.
pub fn current_mode_option(catalog: &SessionCatalog, settings: &Settings) -> String {
    catalog.roster.current_mode(settings).map_or_else(|| settings.mode.clone(), |way| way.name.clone())
}

/// Every option with its current value.
pub fn config_options(catalog: &SessionCatalog, settings: &Settings) -> Vec<SessionConfigOption> {
    let first = [
        agent_option(catalog, settings),
        mode_option(catalog, settings),
        model_option(catalog, settings),
        effort_option(catalog, settings),
        Some(policy_option(catalog.effective_policy(settings))),
    ];
    let routed = catalog.roster.available_modes(settings).nth(1).map(|_| routing_option(settings));
    let ours = first.into_iter().chain([routed]).flatten().chain(limit_options::limit_options(settings));
    let own = catalog.options_of_agent(settings);
    let ours = ours.filter(|option| own.iter().all(|own| *option.id.0 != *own.id));
    ours.chain(own.iter().map(|option| agent_config_option(option, settings))).collect()
}

fn agent_config_option(option: &AgentOption, settings: &Settings) -> SessionConfigOption {
    let choices = option.choices.iter().map(|choice| limit_select_choice(&choice.value, &choice.name));
    let (id, current) = (option.id.clone(), option.current_value(settings).to_owned());
    let shown = SessionConfigOption::select(id, option.name.clone(), current, choices.collect::<Vec<_>>());
    let category = option.category.clone().and_then(|word| serde_json::from_value(Value::String(word)).ok());
    shown.category(category).description(Some(option.description.clone()).filter(|text| !text.is_empty()))
}

/// The change of settings that a value for an option means.
pub fn config_option_patch(
    catalog: &SessionCatalog,
    settings: &Settings,
    option: &str,
    value: &str,
) -> Result<SettingsPatch, Error> {
    let unchanged = SettingsPatch::default();
    let options = config_options(catalog, settings);
    // An agent can be named also where a mode leads to each of them.
    if option != AGENT && !options.iter().any(|known| *known.id.0 == *option) {
        return Err(Error::invalid_params(format!("no such config option: {option}")));
    }
    let own = catalog.options_of_agent(settings).iter().find(|own| own.id == option);
    let known = match option {
        _ if own.is_some() => own.and_then(|own| own.value_patch(value)),
        AGENT => agent_option_patch(catalog, settings, value),
        MODE => catalog
            .roster
            .available_modes(settings)
            .find(|way| is_same_roster_name(&way.name, value))
            .map(|way| way.settings_patch(settings))
            // goose's modes say what may run unasked
            .or_else(|| {
                Some(SettingsPatch { policy: Some(goose::mode::policy_of_goose_mode(value)?), ..unchanged.clone() })
            }),
        MODEL => resolve_model_option(catalog, settings, value)?
            .map(|model| SettingsPatch { model: Some(model), ..unchanged.clone() }),
        EFFORT => catalog
            .efforts
            .iter()
            .find(|effort| effort_option_id(**effort) == value)
            .map(|effort| SettingsPatch { effort: Some(*effort), ..unchanged.clone() }),
        ROUTING => ROUTINGS
            .iter()
            .find(|(_, id, ..)| *id == value)
            .map(|(routing, ..)| SettingsPatch { routing: Some(*routing), ..unchanged.clone() }),
        limit_options::TEMPERATURE | limit_options::MAX_TURNS | limit_options::BUDGET => {
            limit_options::limit_patch(option, value)
        }
        _ => POLICIES
            .iter()
            .find(|policy| policy_option_choice(**policy).0 == value)
            .map(|policy| SettingsPatch { policy: Some(*policy), ..unchanged.clone() }),
    };
    known.ok_or_else(|| Error::invalid_params(unknown_config_option_value(catalog, &options, option, value)))
}

/// What was asked for, and what there is.
fn unknown_config_option_value(
    catalog: &SessionCatalog,
    options: &[SessionConfigOption],
    option: &str,
    value: &str,
) -> String {
    let known = serde_json::to_value(options.iter().find(|known| *known.id.0 == *option)).unwrap_or_default();
    let choices = known["options"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = choices.filter_map(|choice| choice["value"].as_str()).take(MAX_NAMED_CHOICES).collect();
    if option == AGENT {
        names = catalog.roster.agents().iter().map(|agent| agent.name.as_str()).take(MAX_NAMED_CHOICES).collect();
    }
    let value = &value[..value.floor_char_boundary(MAX_QUOTED)];
    match names.is_empty() {
        true => format!("unknown {option}: {value}"),
        false => format!("unknown {option} '{value}', available: {}", names.join(", ")),
    }
}

/// The change of settings that a mode means.
pub fn mode_option_patch(catalog: &SessionCatalog, settings: &Settings, mode: &str) -> Result<SettingsPatch, Error> {
    config_option_patch(catalog, settings, MODE, mode)
}

const POLICIES: [Policy; 4] = [Policy::ReadOnly, Policy::Ask, Policy::AutoEdit, Policy::Auto];

/// Shown where there are agents that no mode leads to, such as one that runs elsewhere.
fn agent_option(catalog: &SessionCatalog, settings: &Settings) -> Option<SessionConfigOption> {
    let agents = catalog.roster.agents();
    let reached = |name: &str| catalog.roster.available_modes(settings).any(|way| way.agent.name == name);
    if agents.iter().all(|agent| reached(&agent.name)) {
        return None;
    }
    let described = agents
        .iter()
        .map(|agent| limit_select_choice(&agent.name, &agent.title).description(agent.description.clone()));
    let option = SessionConfigOption::select(AGENT, "Agent", settings.agent.clone(), described.collect::<Vec<_>>());
    Some(option.category(SessionConfigOptionCategory::Other("_agent".to_owned())))
}

/// The agent of this name in its default mode; the session's own stays in its mode.
fn agent_option_patch(catalog: &SessionCatalog, settings: &Settings, name: &str) -> Option<SettingsPatch> {
    let agent = catalog.roster.find_agent(name)?;
    let other = agent.name != settings.agent;
    let (agent, mode) = (agent.name.clone(), agent.default_mode().to_owned());
    Some(SettingsPatch { agent: other.then_some(agent), mode: other.then_some(mode), ..SettingsPatch::default() })
}

fn mode_option(catalog: &SessionCatalog, settings: &Settings) -> Option<SessionConfigOption> {
    let described = |way: &AgentMode| {
        let choice = limit_select_choice(&way.name, &way.mode.name).description(way.mode.description.clone());
        choice.meta(mode_option_category_meta(way))
    };
    let choices: Vec<_> = catalog.roster.available_modes(settings).map(described).collect();
    let option = || SessionConfigOption::select(MODE, "Mode", current_mode_option(catalog, settings), choices.clone());
    (!choices.is_empty()).then(|| option().category(SessionConfigOptionCategory::Mode))
}

fn model_option(catalog: &SessionCatalog, settings: &Settings) -> Option<SessionConfigOption> {
    let current = current_model_option(catalog, settings)?.to_owned();
    let choices: Vec<_> =
        model_option_choices(catalog, settings).map(|(id, name)| limit_select_choice(id, name)).collect();
    Some(SessionConfigOption::select(MODEL, "Model", current, choices).category(SessionConfigOptionCategory::Model))
}

/// The id that a model is chosen by: itself, or what follows the provider in the id of exactly one model. A date at its
/// end may be left out.
fn resolve_model_option(catalog: &SessionCatalog, settings: &Settings, value: &str) -> Result<Option<String>, Error> {
    if model_option_choices(catalog, settings).any(|(id, _)| id == value) {
        return Ok(Some(value.to_owned()));
    }
    let found = |is_same: &dyn Fn(&str) -> bool| -> Vec<&str> {
        let bare = |id: &str| id.split_once('/').is_some_and(|(_, model)| is_same(model));
        model_option_choices(catalog, settings).map(|(id, _)| id).filter(|id| bare(id)).collect()
    };
    let exact = found(&|model| model == value);
    let dated = |model: &str| {
        let date = model.strip_prefix(value).and_then(|rest| rest.strip_prefix('-'));
        date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let found = if exact.is_empty() { found(&dated) } else { exact };
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some((*only).to_owned())),
        several => {
            Err(Error::invalid_params(format!("several models are called so, name one: {}", several.join(", "))))
        }
    }
}

/// Every model that can be chosen; the current one is among them even if the server does not list it.
fn model_option_choices<'a>(
    catalog: &'a SessionCatalog,
    settings: &'a Settings,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let models = catalog.agent_models.get(&settings.agent).map_or(&catalog.models, |own| &own.models);
    let listed = models.iter().map(|model| (model.id.as_str(), model.name.as_str()));
    let unlisted =
        current_model_option(catalog, settings).filter(|current| models.iter().all(|model| model.id != *current));
    listed.chain(unlisted.map(|id| (id, id)))
}

/// The model that answers. An agent with models of its own does not know what was chosen for another agent.
fn current_model_option<'a>(catalog: &'a SessionCatalog, settings: &'a Settings) -> Option<&'a str> {
    let chosen = settings.model.as_deref();
    match catalog.agent_models.get(&settings.agent) {
        Some(own) => {
            let chosen = chosen.filter(|chosen| own.models.iter().any(|model| model.id == *chosen));
            chosen.or(own.default_model.as_deref())
        }
        None => chosen.or(catalog.default_model.as_deref()),
    }
}

fn effort_option(catalog: &SessionCatalog, settings: &Settings) -> Option<SessionConfigOption> {
    if catalog.efforts.is_empty() {
        return None;
    }
    let unset = settings.effort.is_none().then(|| limit_select_choice("default", "Default"));
    let efforts = catalog
        .efforts
        .iter()
        .map(|effort| limit_select_choice(effort_option_id(*effort), effort_option_name(*effort)));
    let current = settings.effort.map_or("default", effort_option_id);
    let choices: Vec<_> = unset.into_iter().chain(efforts).collect();
    let option = SessionConfigOption::select(EFFORT, "Thinking", current, choices);
    Some(option.category(SessionConfigOptionCategory::ThoughtLevel))
}

fn policy_option(current: Policy) -> SessionConfigOption {
    let choices: Vec<_> = POLICIES
        .iter()
        .map(|policy| {
            let (id, name, description) = policy_option_choice(*policy);
            limit_select_choice(id, name).description(description.to_owned())
        })
        .collect();
    SessionConfigOption::select(POLICY, "Permissions", policy_option_choice(current).0, choices)
        .category(SessionConfigOptionCategory::Other("_permission".to_owned()))
}

const ROUTINGS: [(Routing, &str, &str, &str); 3] = [
    (Routing::Off, "off", "Off", "The session stays in the mode it is set to"),
    (Routing::Rules, "auto", "By words", "Each prompt goes to the mode that its words point to"),
    (Routing::Model, "model", "By a model", "A model says which mode fits each prompt"),
];

fn routing_option(settings: &Settings) -> SessionConfigOption {
    let choices: Vec<_> =
        ROUTINGS.map(|(_, id, name, text)| limit_select_choice(id, name).description(text.to_owned())).into();
    let current = ROUTINGS.iter().find(|(routing, ..)| *routing == settings.routing).map_or("off", |(_, id, ..)| id);
    SessionConfigOption::select(ROUTING, "Routing", current, choices)
        .category(SessionConfigOptionCategory::Other("_routing".to_owned()))
}

fn effort_option_id(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "off",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn effort_option_name(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "Off",
        Effort::Low => "Low",
        Effort::Medium => "Medium",
        Effort::High => "High",
    }
}

fn policy_option_choice(policy: Policy) -> (&'static str, &'static str, &'static str) {
    match policy {
        Policy::ReadOnly => ("read_only", "Read only", "Only looking; everything else is refused"),
        Policy::Ask => ("ask", "Ask", "Looking is free, everything else asks"),
        Policy::AutoEdit => {
            ("auto_edit", "Edit freely", "Looking and editing in the workspace are free, the rest asks")
        }
        Policy::Auto => ("auto", "Run freely", "Everything runs, except what a rule denies or asks for"),
    }
}
