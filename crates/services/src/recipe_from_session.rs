//! A recipe made of a session: written by the mode that writes recipes, in a session below it.

use std::time::Duration;

use gander_agent::recipe::RecipeDraftSource;
use gander_domain::caller::Caller;
use gander_domain::{
    Budget, Command, Event, IfBusy, Message, Part, Policy, Role, Routing, RunId, RunOrigin, ServiceError, SessionId,
    SessionView, Settings,
};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::{Ack, Follower};
use gander_store::clock::SystemIds;
use serde_json::{Map, Value, json};
use uuid::Builder;

use crate::Services;
use crate::errors::service_error_from_denied;
use crate::sessions::{ChildSession, FirstPrompt, start_child_session};

/// The mode that writes recipes.
const MODE: &str = "recipe_maker";

/// The origin of its runs; it is in the log.
const DOOR: &str = "recipe";

/// How long it may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// A recipe made of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionAsRecipe {
    /// The recipe, in order.
    pub recipe: Value,
    /// True if a model wrote it; otherwise it was put together from what was said.
    pub is_written: bool,
}

/// What a recipe of a session says besides what was said in it.
#[derive(Clone, Debug, Default)]
pub struct RecipeExtras {
    /// The extensions in use, in goose's form.
    pub extensions: Vec<Value>,
    /// Who wants it, as they say.
    pub author: Option<Value>,
}

/// Makes a recipe of what was said in a session; `None` if nothing was.
pub async fn recipe_from_session(
    services: &Services,
    caller: &Caller,
    view: &SessionView,
    extras: RecipeExtras,
) -> Result<Option<SessionAsRecipe>, ServiceError> {
    caller.may_prompt().map_err(service_error_from_denied)?;
    let messages = services.sessions.messages_before_run(view).await?;
    let source = recipe_source_from_session(services, view, &messages, extras);
    let Some(mechanical) = source.mechanical_recipe() else { return Ok(None) };
    let answer = ask_recipe_maker(services, view, source.request_text()).await;
    let written = answer.and_then(|answer| source.written_recipe(&answer));
    Ok(Some(SessionAsRecipe { is_written: written.is_some(), recipe: written.unwrap_or(mechanical) }))
}

fn recipe_source_from_session(
    services: &Services,
    view: &SessionView,
    messages: &[Message],
    extras: RecipeExtras,
) -> RecipeDraftSource {
    let texts = messages.iter().map(|message| (message.role, message.plain_text()));
    let texts: Vec<(Role, String)> = texts.filter(|(_, text)| !text.trim().is_empty()).collect();
    let mut tools: Vec<String> = Vec::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
        if let Part::ToolUse { name, .. } = part
            && !tools.contains(name)
        {
            tools.push(name.clone());
        }
    }
    let said = |(role, text): &(Role, String)| match role {
        Role::User => format!("User: {text}\n"),
        Role::Agent => format!("Agent: {text}\n"),
        Role::Tool => String::new(),
    };
    RecipeDraftSource {
        title: view.title.clone().unwrap_or_else(|| "Untitled".to_owned()),
        prompts: texts.iter().filter(|(role, _)| *role == Role::User).map(|(_, text)| text.clone()).collect(),
        conversation: texts.iter().map(said).collect(),
        tools,
        extensions: extras.extensions,
        settings: recipe_settings_in_use(services, &view.settings),
        author: extras.author,
    }
}

/// The model of a session and its limits, as a recipe names them.
fn recipe_settings_in_use(services: &Services, settings: &Settings) -> Map<String, Value> {
    let model = settings.model.clone().or_else(|| services.models.known_default());
    let model = model.as_deref().and_then(|model| model.split_once('/'));
    let named = model
        .into_iter()
        .flat_map(|(provider, model)| [("goose_provider", json!(provider)), ("goose_model", json!(model))]);
    let temperature = settings.temperature.map(|hundredths| ("temperature", json!(f64::from(hundredths) / 100.0)));
    let turns = settings.max_turns.map(|turns| ("max_turns", json!(turns)));
    named.chain(temperature).chain(turns).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// What the mode answers; `None` if it does not get to an answer. Its session stays below the one it is about, where its
/// usage can be seen, and goes with that one.
async fn ask_recipe_maker(services: &Services, view: &SessionView, text: String) -> Option<String> {
    let settings = recipe_maker_settings(services, view)?;
    let (run, caller) = (RunId::make(&mut SystemIds), Caller::internal(view.owner.clone()));
    let origin = RunOrigin { by: view.owner.clone(), door: DOOR.to_owned() };
    let command = Command::Prompt {
        run,
        origin: origin.clone(),
        parts: vec![Part::text(text)],
        if_busy: IfBusy::Refuse,
        meta: None,
    };
    let id = recipe_maker_session_id();
    let (prompt, inherited) = (FirstPrompt { command, ack: Ack::Committed }, view.provenance.text_mark());
    let child = ChildSession { id, settings, prompt, inherited };
    let mut begun = start_child_session(&services.hub, &caller, view, child, ClientResources::default()).await;
    begun.accepted.await.ok()?;
    let answer = tokio::time::timeout(WRITE_TIMEOUT, follow_recipe_maker(&mut begun.follower, run)).await;
    let answer = answer.ok().flatten();
    // Nobody looks for it in a list. It has ended, or there is no use in waiting any longer.
    for command in [Command::Cancel { run: Some(run), origin }, Command::Archive { archived: true }] {
        drop(services.hub.execute_command(&caller, id, command, Ack::Committed).await);
    }
    answer
}

/// Of the kind that marks sessions which are deleted with the one above them.
fn recipe_maker_session_id() -> SessionId {
    let bytes = *SessionId::make(&mut SystemIds).uuid().as_bytes();
    SessionId::new(Builder::from_custom_bytes(bytes).into_uuid())
}

/// The last that the agent said in this run, once it has ended.
async fn follow_recipe_maker(follower: &mut Follower, run: RunId) -> Option<String> {
    let mut answer = None;
    while let Some(batch) = follower.next_batch().await.ok()? {
        for entry in batch.iter().filter(|entry| entry.run == Some(run)) {
            if let Event::MessageDone { message } = &entry.event {
                answer = (message.role == Role::Agent).then(|| message.plain_text()).or(answer);
            } else if matches!(entry.event, Event::QuestionAsked { .. }) {
                return None; // nobody is there to ask
            } else if matches!(entry.event, Event::RunEnded { .. }) {
                return answer;
            }
        }
    }
    None
}

/// Never more than the session itself may, nor more than is left; and nothing but looking.
fn recipe_maker_settings(services: &Services, view: &SessionView) -> Option<Settings> {
    let roster = services.agents.roster_in_folder(&view.workspace);
    let mode = roster.find_mode(MODE)?;
    let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
    let budget = view.settings.budget;
    Some(Settings {
        agent: mode.agent.name.clone(),
        mode: mode.mode.id.clone(),
        policy: Policy::ReadOnly,
        routing: Routing::Off,
        budget: Budget {
            tokens: left(budget.tokens, view.spent.input + view.spent.output),
            cost: left(budget.cost, view.spent.cost),
        },
        ..view.settings.clone()
    })
}
