//! The agent of a session: started, told what to use, asked what it can do.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use bytes::Bytes;
use gander_agent::recipe::{Recipe, Values};
use gander_domain::{Command, ModelParams, SessionId, SessionView, SettingsPatch};
use gander_services::apply_recipe::{ApplyRecipe, apply_recipe};
use gander_services::sessions::{NewSession, SessionError, SessionFolder};
use gander_wire::goose::mode;
use http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::{GooseCaller, HandlerResult, goose_empty_response, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, goose_bad_request, no_such_goose_session};
use crate::protocols::goose::{apply_goose_config, extensions, recipes, runs, sessions, tools};

/// Parameters for a provider take at most so many bytes.
const MAX_REQUEST_PARAMS: usize = 16 << 10;

/// `POST /agent/start`.
pub(crate) async fn post_agent_start(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Start {
        /// Left out or a text: goose itself takes no null.
        #[serde(default, deserialize_with = "deserialize_present_text")]
        working_dir: Option<String>,
        recipe: Option<Value>,
        recipe_id: Option<String>,
        recipe_deeplink: Option<String>,
        #[serde(default)]
        extension_overrides: Option<Vec<Value>>,
    }
    let Start { working_dir, recipe, recipe_id, recipe_deeplink, extension_overrides } = read_goose_json(&body)?;
    let services = caller.services();
    let recipe = match (recipe, recipe_id, recipe_deeplink) {
        (Some(recipe), ..) if !recipe.is_null() => Some(recipe),
        (_, Some(id), _) => Some(find_agent_recipe(&caller, &id).await?),
        (_, None, Some(link)) => Some(recipes::decode_goose_recipe_link(&link)?),
        (_, None, None) => None,
    };
    let checked = recipe.as_ref().map(recipes::check_goose_recipe).transpose()?;
    let of_recipe = checked.iter().flat_map(|recipe| &recipe.extensions).map(|one| one.name.clone());
    let of_recipe: Vec<String> = of_recipe.collect();
    let mut settings = services.default_session_settings();
    apply_goose_config(services, &caller.peer, &mut settings).await?;
    let mut kept = Map::new();
    kept.extend(recipe.map(|recipe| ("recipe".to_owned(), recipe)));
    let wanted = extension_overrides.clone();
    if let Some(extensions) = extension_overrides {
        let extensions: Vec<Value> = extensions.into_iter().map(extensions::extension_config_without_secrets).collect();
        let data = json!({ "enabled_extensions.v0": { "extensions": extensions } });
        kept.insert("extension_data".to_owned(), data);
    }
    let new = NewSession {
        workspace: working_dir.map(SessionFolder::Chosen),
        meta: Some(json!({ "goose": kept })),
        ..NewSession::with_id(services.sessions.new_id().await?, settings)
    };
    let view = services.sessions.create(&caller.peer.caller, new).await.map_err(|error| match error {
        SessionError::Folder(error) => goose_bad_request(format!("working_dir {error}")),
        error @ (SessionError::AliasTaken(_) | SessionError::Document(_) | SessionError::Hub(_)) => error.into(),
    })?;
    let view = start_agent_recipe(&caller, view, checked).await?;
    if let Some(wanted) = wanted {
        use_only_agent_extensions(&caller, &view, &wanted, &of_recipe).await?;
    }
    goose_json_response(Value::Object(sessions::load_goose_session_object(services, &view).await?))
}

/// Gives a new session exactly these extensions and those of its recipe: they stand in place of what every session has.
async fn use_only_agent_extensions(
    caller: &GooseCaller,
    view: &SessionView,
    wanted: &[Value],
    of_recipe: &[String],
) -> Result<(), GooseError> {
    let (services, session) = (caller.services(), Some(view.session));
    let of_recipe = of_recipe.iter().map(String::as_str);
    let names: Vec<&str> = wanted.iter().map(extensions::extension_config_name).chain(of_recipe).collect();
    for extension in wanted {
        // The session is there without it too; `/agent/resume` tells which are.
        if let Err(error) = extensions::add_goose_extension(services, &caller.peer, session, extension).await {
            tracing::debug!(%error, "an extension is left out");
        }
    }
    for known in extensions::goose_session_extensions(services, view) {
        let name = extensions::extension_config_name(&known);
        if !names.contains(&name) {
            extensions::remove_extension(services, &caller.peer.caller, session, name).await?;
        }
    }
    Ok(())
}

/// `POST /agent/resume`.
pub(crate) async fn post_agent_resume(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let session = session_in_agent_body(&body)?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    caller.services().require_load(&view)?;
    let _whole = caller.state.whole_response_permit().await?;
    let object = sessions::goose_session_with_conversation(caller.services(), &view).await?;
    let results = agent_extension_results(&caller, &view, &object["extension_data"]);
    goose_json_response(json!({ "session": object, "extension_results": results }))
}

/// `POST /agent/restart`: there is no process of its own to start again.
pub(crate) async fn post_agent_restart(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session_in_agent_body(&body)?).await?;
    let object = sessions::load_goose_session_object(caller.services(), &view).await?;
    goose_json_response(
        json!({ "extension_results": agent_extension_results(&caller, &view, &object["extension_data"]) }),
    )
}

/// `POST /agent/stop`: whatever runs is cancelled; the session stays.
pub(crate) async fn post_agent_stop(caller: GooseCaller, body: Bytes) -> HandlerResult {
    runs::cancel_goose_run(caller.services(), &caller.peer, session_in_agent_body(&body)?, None).await?;
    goose_empty_response()
}

/// `POST /agent/update_provider`.
pub(crate) async fn post_agent_provider(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        provider: String,
        model: Option<String>,
        context_limit: Option<u64>,
        request_params: Option<Map<String, Value>>,
    }
    let Update { session_id, provider, model, context_limit, request_params } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let request = request_params.unwrap_or_default();
    if json!(request).to_string().len() > MAX_REQUEST_PARAMS {
        return Err(goose_bad_request(format!("request_params must have at most {MAX_REQUEST_PARAMS} bytes")));
    }
    if context_limit == Some(0) {
        return Err(goose_bad_request("context_limit must be at least 1"));
    }
    let model_params = Some(ModelParams { window: context_limit, request });
    let chosen = caller.services().models.qualified_name(&provider, model.as_deref());
    let model =
        chosen.ok_or_else(|| goose_bad_request(format!("Failed to create {provider} provider: no such provider")))?;
    configure_agent_session(
        &caller,
        session,
        SettingsPatch { model: Some(model), model_params, ..SettingsPatch::default() },
    )
    .await
}

/// `POST /agent/update_session`.
pub(crate) async fn post_agent_session(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        goose_mode: Option<String>,
    }
    let Update { session_id, goose_mode } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    let patch = match goose_mode {
        // goose's modes say what may run unasked; ours say how the agent works.
        Some(mode) => match mode::policy_of_goose_mode(&mode) {
            Some(policy) => SettingsPatch { policy: Some(policy), ..SettingsPatch::default() },
            None => runs::goose_run_mode_patch(caller.services(), &view, &mode)
                .map_err(|error| goose_bad_request(format!("Invalid mode: {error}")))?,
        },
        None => SettingsPatch::default(),
    };
    configure_agent_session(&caller, session, patch).await
}

/// `POST /agent/update_from_session`: a session's recipe is in force since it began.
pub(crate) async fn post_agent_from_session(caller: GooseCaller, body: Bytes) -> HandlerResult {
    sessions::find_own_goose_session(caller.services(), &caller.peer, session_in_agent_body(&body)?).await?;
    goose_empty_response()
}

/// `POST /agent/update_working_dir`: a session keeps the folder that its history is about.
pub(crate) async fn post_agent_working_dir(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        working_dir: String,
    }
    let Update { session_id, working_dir } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    let services = caller.services();
    if services.workspaces.is_same_folder(&working_dir, &view.workspace) {
        return goose_empty_response();
    }
    let chosen = services.workspaces.choose_workspace(&services.hub, &caller.peer.caller, &working_dir).await;
    chosen.map_err(|error| goose_bad_request(format!("working_dir {error}")))?;
    Err(GooseError::new(StatusCode::NOT_IMPLEMENTED, "a session keeps its folder, begin another one there"))
}

/// `GET /agent/tools`.
pub(crate) async fn get_agent_tools(
    caller: GooseCaller,
    query: Result<Query<SessionQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(SessionQuery { session_id, extension_name }) =
        query.map_err(|_| goose_bad_request("session_id is missing"))?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    goose_json_response(Value::Array(match extension_name.filter(|name| !name.is_empty()) {
        Some(extension) => tools::goose_extension_tools(caller.services(), &view, &extension),
        None => tools::goose_session_tools(caller.services(), &view),
    }))
}

#[derive(Deserialize)]
pub(crate) struct SessionQuery {
    session_id: String,
    extension_name: Option<String>,
}

/// `POST /agent/add_extension`.
pub(crate) async fn post_agent_add_extension(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let said: Value = read_goose_json(&body)?;
    let session = said["session_id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(no_such_goose_session)?;
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    extensions::add_goose_extension(
        caller.services(),
        &caller.peer,
        Some(session),
        said.get("config").unwrap_or(&said),
    )
    .await?;
    goose_empty_response()
}

/// `POST /agent/remove_extension`. One that is not there is gone already.
pub(crate) async fn post_agent_remove_extension(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Remove {
        session_id: String,
        name: String,
    }
    let Remove { session_id, name } = read_goose_json(&body)?;
    let session = session_id.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    if extensions::goose_session_extensions(caller.services(), &view)
        .iter()
        .any(|known| extensions::extension_config_name(known) == name)
    {
        extensions::remove_extension(caller.services(), &caller.peer.caller, Some(session), &name).await?;
    }
    goose_empty_response()
}

/// A text that is there.
fn deserialize_present_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer);
    text.map(Some).map_err(|error| serde::de::Error::custom(format!("working_dir: {error}")))
}

fn session_in_agent_body(body: &Bytes) -> Result<SessionId, GooseError> {
    #[derive(Deserialize)]
    struct Of {
        session_id: String,
    }
    read_goose_json::<Of>(body)?.session_id.parse().map_err(|_| no_such_goose_session())
}

async fn configure_agent_session(caller: &GooseCaller, session: SessionId, patch: SettingsPatch) -> HandlerResult {
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    runs::send_goose_command(caller.services(), &caller.peer, session, Command::Configure { patch }).await?;
    goose_empty_response()
}

async fn find_agent_recipe(caller: &GooseCaller, id: &str) -> Result<Value, GooseError> {
    recipes::find_saved_goose_recipe(caller.services(), &caller.peer, id)
        .await?
        .ok_or_else(|| GooseError::new(StatusCode::NOT_FOUND, "Recipe not found"))
}

/// A recipe without open parameters is in force at once; another one when its values come.
async fn start_agent_recipe(
    caller: &GooseCaller,
    view: SessionView,
    recipe: Option<Recipe>,
) -> Result<SessionView, GooseError> {
    let (services, peer) = (caller.services(), &caller.peer);
    let Some(recipe) = recipe else { return Ok(view) };
    if recipe.missing_parameters(&Values::new()).is_empty() {
        let session = view.session;
        if let Err(refusal) =
            apply_recipe(services, &peer.caller, &view, ApplyRecipe { recipe, ..ApplyRecipe::default() }).await
        {
            // Nobody heard of it yet.
            services.sessions.delete(&peer.caller, session).await?;
            return Err(refusal.into());
        }
    }
    Ok(sessions::find_own_goose_session(services, peer, view.session).await?)
}

/// Which of the extensions that a client wanted for its session are there.
fn agent_extension_results(caller: &GooseCaller, view: &SessionView, data: &Value) -> Vec<Value> {
    let wanted = data["enabled_extensions.v0"]["extensions"].as_array().cloned().unwrap_or_default();
    let there = extensions::goose_session_extensions(caller.services(), view);
    let result = |extension: &Value| {
        let name = extensions::extension_config_name(extension);
        match there.iter().any(|known| extensions::extension_config_name(known) == name) {
            true => json!({ "name": name, "success": true }),
            false => json!({ "name": name, "success": false, "error": "not started from here" }),
        }
    };
    wanted.iter().map(result).collect()
}
