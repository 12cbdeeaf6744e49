//! A session begins to follow a recipe.

use gander_agent::recipe::{Flaw, Recipe, Values};
use gander_domain::caller::Caller;
use gander_domain::{Command, ServiceError, SessionView, SettingsPatch};
use gander_runtime::hub::Ack;

use super::{Followed, extensions};
use crate::errors::{refusal, unavailable};
use crate::extensions::Entry;
use crate::{Services, extension_changes as door};

/// What somebody wants.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The recipe.
    pub recipe: Recipe,
    /// What is filled in.
    pub values: Values,
    /// Its folder, if it came from a file.
    pub folder: Option<String>,
    /// Extensions whose programs its user agreed to.
    pub approved: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// The recipe, filled in.
    pub recipe: Recipe,
    /// What is asked first, if the recipe says.
    pub prompt: Option<String>,
    /// Extensions that are not to be had here.
    pub absent: Vec<String>,
}

/// Makes a session follow a recipe: its instructions and limits hold for every run from now on.
pub async fn apply(desk: &Services, caller: &Caller, view: &SessionView, wish: Wish) -> Result<Begun, ServiceError> {
    let Wish { recipe, values, folder, approved } = wish;
    let recipe = desk.recipes.ready(&recipe, &values, &view.workspace, folder.as_deref()).await;
    let recipe = recipe.map_err(|flaw| flawed(&flaw))?;
    let wanted = extensions::agreed(desk, caller, &recipe, &approved)?;
    let patch = settings(desk, &recipe)?;
    desk.recipes
        .follow(view.session, &Followed { recipe: recipe.clone(), folder })
        .await
        .map_err(|error| unavailable(&error))?;
    let there = desk.extensions.built_ins(view);
    for built_in in wanted.built_ins.into_iter().filter(|wanted| !there.has(*wanted)) {
        door::add(desk, caller, Some(view.session), built_in.name(), Entry::built_in()).await?;
    }
    let servers = [wanted.programs, wanted.addresses].concat();
    if !servers.is_empty() {
        desk.extensions.bring(view, servers);
    }
    let title = view.title.is_none().then(|| Command::SetTitle { title: title(&recipe) });
    let configure = (patch != SettingsPatch::default()).then_some(Command::Configure { patch });
    for command in configure.into_iter().chain(title) {
        let done = desk.hub.command(caller, view.session, command, Ack::Synced).await;
        done.map_err(|error| refusal(view.session, &error))?;
    }
    let prompt = recipe.prompt.clone().filter(|prompt| !prompt.trim().is_empty());
    Ok(Begun { recipe, prompt, absent: wanted.absent })
}

/// A flaw as every door tells it.
pub fn flawed(flaw: &Flaw) -> ServiceError {
    ServiceError::BadParams(format!("not a recipe that can be used, {flaw}"))
}

/// The model that a recipe wants, and its limits. One that nobody here knows is refused: another would do something else.
fn settings(desk: &Services, recipe: &Recipe) -> Result<SettingsPatch, ServiceError> {
    let wanted = recipe.settings.clone().unwrap_or_default();
    let model = match (wanted.goose_provider, wanted.goose_model) {
        (Some(provider), model) => Some(desk.models.named(&provider, model.as_deref()).ok_or_else(|| {
            ServiceError::BadParams(format!("settings.goose_provider: no such provider here: {provider}"))
        })?),
        (None, Some(model)) if model.contains('/') => Some(model),
        (None, Some(_) | None) => None,
    };
    // From 0 to 2: the check of the recipe saw to that.
    let temperature = wanted.temperature.map(|degrees| (degrees * 100.0).round() as u16);
    Ok(SettingsPatch { model, temperature, max_turns: wanted.max_turns, ..SettingsPatch::default() })
}

fn title(recipe: &Recipe) -> String {
    let line: String = recipe.title.chars().filter(|letter| !letter.is_control()).take(200).collect();
    if line.trim().is_empty() { "Recipe".to_owned() } else { line.trim().to_owned() }
}
