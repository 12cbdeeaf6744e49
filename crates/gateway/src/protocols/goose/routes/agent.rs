//! The agent of a session: started, told what to use, asked what it can do.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use bytes::Bytes;
use gander_agent::recipe::{Recipe, Values};
use gander_domain::{Birth, Command, SessionId, SessionView, SettingsPatch};
use gander_services::recipes::{Wish, apply};
use gander_store::clock::SystemIds;
use gander_wire::goose::mode;
use http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::{Answer, Caller, Fault, bad, empty, json_answer, no_session, read};
use crate::protocols::goose::{extensions, preset, providers, recipes, runs, sessions};

/// `POST /agent/start`.
pub(crate) async fn start(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Start {
        /// Left out or a text: goose itself takes no null.
        #[serde(default, deserialize_with = "given")]
        working_dir: Option<String>,
        recipe: Option<Value>,
        recipe_id: Option<String>,
        recipe_deeplink: Option<String>,
        #[serde(default)]
        extension_overrides: Option<Vec<Value>>,
    }
    let Start { working_dir, recipe, recipe_id, recipe_deeplink, extension_overrides } = read(&body)?;
    let desk = caller.desk();
    let recipe = match (recipe, recipe_id, recipe_deeplink) {
        (Some(recipe), ..) if !recipe.is_null() => Some(recipe),
        (_, Some(id), _) => Some(saved_recipe(&caller, &id).await?),
        (_, None, Some(link)) => Some(recipes::decode(&link)?),
        (_, None, None) => None,
    };
    let checked = recipe.as_ref().map(recipes::check).transpose()?;
    let session = SessionId::make(&mut SystemIds);
    let folder = match &working_dir {
        Some(folder) => desk.workspaces.choose(&desk.hub, &caller.peer.caller, folder).await,
        None => desk.workspaces.private(session),
    };
    let mut settings = desk.settings.clone();
    preset(desk, &caller.peer, &mut settings).await?;
    let mut kept = Map::new();
    kept.extend(recipe.map(|recipe| ("recipe".to_owned(), recipe)));
    let wanted = extension_overrides.clone().unwrap_or_default();
    if let Some(extensions) = extension_overrides {
        let extensions: Vec<Value> = extensions.into_iter().map(extensions::without_secrets).collect();
        let data = json!({ "enabled_extensions.v0": { "extensions": extensions } });
        kept.insert("extension_data".to_owned(), data);
    }
    let birth = Birth {
        session,
        owner: caller.peer.caller.principal.clone(),
        workspace: folder.map_err(|error| bad(format!("working_dir {error}")))?,
        folders: Vec::new(),
        settings,
        parent: None,
        meta: Some(json!({ "goose": kept })),
    };
    let view = desk.hub.create(&caller.peer.caller, birth, Vec::new()).await;
    let view = view.map_err(|error| Fault::from(gander_services::errors::refusal(session, &error)))?;
    let view = follow(&caller, view, checked).await?;
    for extension in &wanted {
        // The session is there without it too; `/agent/resume` tells which are.
        if let Err(error) = extensions::add(desk, &caller.peer, Some(session), extension).await {
            tracing::debug!(%error, "an extension is left out");
        }
    }
    json_answer(Value::Object(sessions::object(desk, &view).await?))
}

/// `POST /agent/resume`.
pub(crate) async fn resume(caller: Caller, body: Bytes) -> Answer {
    let session = named(&body)?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let _whole = caller.state.whole_response_permit().await;
    let object = sessions::whole(caller.desk(), &view).await?;
    let results = extension_results(&caller, &view, &object["extension_data"]);
    json_answer(json!({ "session": object, "extension_results": results }))
}

/// `POST /agent/restart`: there is no process of its own to start again.
pub(crate) async fn restart(caller: Caller, body: Bytes) -> Answer {
    let view = sessions::own(caller.desk(), &caller.peer, named(&body)?).await?;
    let object = sessions::object(caller.desk(), &view).await?;
    json_answer(json!({ "extension_results": extension_results(&caller, &view, &object["extension_data"]) }))
}

/// `POST /agent/stop`: whatever runs is cancelled; the session stays.
pub(crate) async fn stop(caller: Caller, body: Bytes) -> Answer {
    runs::cancel(caller.desk(), &caller.peer, named(&body)?, None).await?;
    empty()
}

/// `POST /agent/update_provider`.
pub(crate) async fn update_provider(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        provider: String,
        model: Option<String>,
    }
    let Update { session_id, provider, model } = read(&body)?;
    let session = session_id.parse().map_err(|_| no_session())?;
    let chosen = caller.desk().models.named(&provider, model.as_deref());
    let model = chosen.ok_or_else(|| bad(format!("Failed to create {provider} provider: no such provider")))?;
    configure(&caller, session, SettingsPatch { model: Some(model), ..SettingsPatch::default() }).await
}

/// `POST /agent/update_session`.
pub(crate) async fn update_session(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        goose_mode: Option<String>,
    }
    let Update { session_id, goose_mode } = read(&body)?;
    let session = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let patch = match goose_mode {
        Some(mode) => changed(&caller, &view, &mode).ok_or_else(|| bad(format!("Invalid mode: {mode}")))?,
        None => SettingsPatch::default(),
    };
    configure(&caller, session, patch).await
}

/// goose's modes say what may run unasked; ours say how the agent works.
fn changed(caller: &Caller, view: &SessionView, mode: &str) -> Option<SettingsPatch> {
    match mode::policy(mode) {
        Some(policy) => Some(SettingsPatch { policy: Some(policy), ..SettingsPatch::default() }),
        None => caller.desk().agents.roster_in(&view.workspace).choose(mode, &view.settings),
    }
}

/// `POST /agent/update_from_session`: a session's recipe is in force since it began.
pub(crate) async fn update_from_session(caller: Caller, body: Bytes) -> Answer {
    sessions::own(caller.desk(), &caller.peer, named(&body)?).await?;
    empty()
}

/// `POST /agent/update_working_dir`: a session keeps the folder that its history is about.
pub(crate) async fn update_working_dir(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Update {
        session_id: String,
        working_dir: String,
    }
    let Update { session_id, working_dir } = read(&body)?;
    let session = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let desk = caller.desk();
    if desk.workspaces.is_same(&working_dir, &view.workspace) {
        return empty();
    }
    let chosen = desk.workspaces.choose(&desk.hub, &caller.peer.caller, &working_dir).await;
    chosen.map_err(|error| bad(format!("working_dir {error}")))?;
    Err(Fault::new(StatusCode::NOT_IMPLEMENTED, "a session keeps its folder, begin another one there"))
}

/// `GET /agent/tools`.
pub(crate) async fn tools(caller: Caller, query: Result<Query<OfSession>, QueryRejection>) -> Answer {
    let Query(OfSession { session_id, extension_name }) = query.map_err(|_| bad("session_id is missing"))?;
    let session = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    json_answer(Value::Array(match extension_name.filter(|name| !name.is_empty()) {
        Some(extension) => providers::tools_in(caller.desk(), &view, &extension),
        None => providers::tools(caller.desk(), &view),
    }))
}

#[derive(Deserialize)]
pub(crate) struct OfSession {
    session_id: String,
    extension_name: Option<String>,
}

/// `POST /agent/add_extension`.
pub(crate) async fn add_extension(caller: Caller, body: Bytes) -> Answer {
    let said: Value = read(&body)?;
    let session = said["session_id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(no_session)?;
    sessions::own(caller.desk(), &caller.peer, session).await?;
    extensions::add(caller.desk(), &caller.peer, Some(session), said.get("config").unwrap_or(&said)).await?;
    empty()
}

/// `POST /agent/remove_extension`. One that is not there is gone already.
pub(crate) async fn remove_extension(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Remove {
        session_id: String,
        name: String,
    }
    let Remove { session_id, name } = read(&body)?;
    let session = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    if extensions::of_session(caller.desk(), &view).iter().any(|known| extensions::name(known) == name) {
        extensions::remove(caller.desk(), &caller.peer.caller, Some(session), &name).await?;
    }
    empty()
}

/// A text that is there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer);
    text.map(Some).map_err(|error| serde::de::Error::custom(format!("working_dir: {error}")))
}

fn named(body: &Bytes) -> Result<SessionId, Fault> {
    #[derive(Deserialize)]
    struct Of {
        session_id: String,
    }
    read::<Of>(body)?.session_id.parse().map_err(|_| no_session())
}

async fn configure(caller: &Caller, session: SessionId, patch: SettingsPatch) -> Answer {
    sessions::own(caller.desk(), &caller.peer, session).await?;
    runs::command(caller.desk(), &caller.peer, session, Command::Configure { patch }).await?;
    empty()
}

async fn saved_recipe(caller: &Caller, id: &str) -> Result<Value, Fault> {
    recipes::saved(caller.desk(), &caller.peer, id)
        .await?
        .ok_or_else(|| Fault::new(StatusCode::NOT_FOUND, "Recipe not found"))
}

/// A recipe without open parameters is in force at once; another one when its values come.
async fn follow(caller: &Caller, view: SessionView, recipe: Option<Recipe>) -> Result<SessionView, Fault> {
    let (desk, peer) = (caller.desk(), &caller.peer);
    let Some(recipe) = recipe else { return Ok(view) };
    if recipe.missing(&Values::new()).is_empty() {
        let session = view.session;
        if let Err(refusal) = apply(desk, &peer.caller, &view, Wish { recipe, ..Wish::default() }).await {
            // Nobody heard of it yet.
            desk.hub
                .delete(&peer.caller, session)
                .await
                .map_err(|error| Fault::from(gander_services::errors::refusal(session, &error)))?;
            return Err(refusal.into());
        }
    }
    Ok(sessions::own(desk, peer, view.session).await?)
}

/// Which of the extensions that a client wanted for its session are there.
fn extension_results(caller: &Caller, view: &SessionView, data: &Value) -> Vec<Value> {
    let wanted = data["enabled_extensions.v0"]["extensions"].as_array().cloned().unwrap_or_default();
    let there = extensions::of_session(caller.desk(), view);
    let result = |extension: &Value| {
        let name = extensions::name(extension);
        match there.iter().any(|known| extensions::name(known) == name) {
            true => json!({ "name": name, "success": true }),
            false => json!({ "name": name, "success": false, "error": "not started from here" }),
        }
    };
    wanted.iter().map(result).collect()
}
