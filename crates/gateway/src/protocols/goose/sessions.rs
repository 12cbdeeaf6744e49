//! Sessions as goose's objects and files.

use gander_domain::{Entry, LoadSession, Seq, ServiceError, SessionId, SessionView, Settings, Usage};
use gander_domain::{sanitize, session_command};
use gander_services::Services;
use gander_services::errors::{service_error_from_hub, service_error_from_store};
use gander_services::schedules::Schedule;
use gander_services::sessions::ImportedSession;
use gander_services::user_store::{Collection, UserStore};
use gander_store::clock::SystemIds;
use gander_store::{DeltaForm, Limit, read_all};
use gander_wire::goose::{self, ConversationProjection, GooseTranscript};
use serde_json::{Map, Value, json};

use crate::ClientPeer;
use crate::log_list::{ListProjection, LogList};

/// A session of this client's own.
pub async fn find_own_goose_session(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
) -> Result<SessionView, ServiceError> {
    Ok(services.sessions.view(&peer.caller, session).await?)
}

/// Everything that was said in a session.
pub async fn load_session_transcript(services: &Services, session: SessionId) -> Result<GooseTranscript, ServiceError> {
    let entries = read_all(&**services.hub.store(), session, DeltaForm::Joined).await;
    Ok(GooseTranscript::replay(&entries.map_err(|error| service_error_from_hub(session, &error.into()))?))
}

/// The object of a session, without its conversation.
pub async fn load_goose_session_object(
    services: &Services,
    view: &SessionView,
) -> Result<Map<String, Value>, ServiceError> {
    let mut kept = initial_session_meta(services, view.session).await?;
    let user_store = UserStore::open(services.hub.store(), &view.owner);
    let later = user_store
        .get(Collection::Session, &view.session.to_string())
        .await
        .map_err(|error| service_error_from_store(&error))?;
    if let Some(Value::Object(later)) = later {
        kept.extend(later);
    }
    let default = services.models.known_default();
    let policy = view.settings.session_policy().under_setting(services.default_session_settings().policy);
    Ok(goose::session::goose_session_object(view, Some(&Value::Object(kept)), default.as_deref(), policy))
}

/// The object of a session with its conversation.
pub async fn goose_session_with_conversation(
    services: &Services,
    view: &SessionView,
) -> Result<Map<String, Value>, ServiceError> {
    let mut object = load_goose_session_object(services, view).await?;
    let messages = load_session_transcript(services, view.session).await?.all_messages();
    object.insert("message_count".to_owned(), json!(messages.len()));
    object.insert("conversation".to_owned(), Value::Array(messages));
    Ok(object)
}

/// A session as the text of a file that goose reads.
pub async fn export_goose_session(services: &Services, view: &SessionView) -> Result<String, ServiceError> {
    services.require_load(view)?;
    let object = goose_session_with_conversation(services, view).await?;
    serde_json::to_string_pretty(&object).map_err(|error| ServiceError::Internal(error.to_string()))
}

/// What was said in a session, made while it is taken. Nothing of a session whose agent loads none.
pub async fn session_conversation_list(
    services: &Services,
    view: &SessionView,
) -> Result<LogList<ConversationProjection>, ServiceError> {
    let (store, session, projection) = (services.hub.store(), view.session, ConversationProjection::default());
    let items = match services.load_session(&view.settings.agent) {
        LoadSession::Supported => LogList::open(store, session, projection).await,
        LoadSession::Unsupported => Ok(LogList::withheld(store, session, projection)),
    };
    items.map_err(|error| service_error_from_hub(session, &error.into()))
}

impl ListProjection for ConversationProjection {
    fn project_entry(&mut self, entry: &Entry) -> Vec<Value> {
        Self::project_entry(self, entry)
    }

    fn finish(&mut self) -> Vec<Value> {
        self.open_questions()
    }
}

/// A new session from the text of a file that goose wrote.
///
/// Its permissions are this server's: a file does not raise them.
pub async fn import_goose_session(
    services: &Services,
    peer: &ClientPeer,
    text: &str,
) -> Result<SessionView, ServiceError> {
    let bad = |error: String| ServiceError::BadParams(format!("not an exported session: {error}"));
    let file: Value = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    let object = file.as_object().ok_or_else(|| bad("no object".to_owned()))?;
    let said = object.get("conversation").and_then(Value::as_array).cloned().unwrap_or_default();
    let messages =
        goose::requests::read_goose_conversation(&said, &mut SystemIds).map_err(|error| bad(error.to_string()))?;
    let imported = ImportedSession {
        settings: Settings { model: known_session_model(services, object), ..services.default_session_settings() },
        meta: Some(json!({ "goose": goose::requests::goose_exported_meta(object) })),
        messages,
        title: ["name", "description"].iter().find_map(|key| check_session_title(object.get(*key)?.as_str()?).ok()),
        usage: exported_session_usage(object),
        ignored: ignored_session_fields(object),
    };
    Ok(services.sessions.import(&peer.caller, imported).await?)
}

/// What of a file does not hold here.
fn ignored_session_fields(object: &Map<String, Value>) -> Vec<String> {
    let said = |key: &str, name: &str| {
        let text = object.get(key)?.as_str()?;
        Some(format!("{name} {}", sanitize::sanitized_line(text)))
    };
    let extensions =
        object.get("extension_data").is_some_and(|data| data.as_object().is_some_and(|all| !all.is_empty()));
    let extensions = extensions.then(|| "extensions".to_owned());
    [said("goose_mode", "mode"), said("working_dir", "workspace"), extensions].into_iter().flatten().collect()
}

/// A title that can be shown in a list.
pub fn check_session_title(text: &str) -> Result<String, ServiceError> {
    session_command::check_session_command_title(text).map_err(ServiceError::from)
}

/// What the session of a schedule says about itself: goose's clients tell it apart by that.
pub fn goose_scheduled_session_meta(schedule: &Schedule) -> Value {
    let Schedule { id, recipe, .. } = schedule;
    json!({ "goose": { "session_type": "scheduled", "schedule_id": id, "recipe": recipe } })
}

/// What a client said when it made or imported the session.
pub async fn initial_session_meta(services: &Services, session: SessionId) -> Result<Map<String, Value>, ServiceError> {
    let first = Limit { entries: 1, ..Limit::default() };
    let entries = services.hub.store().read(session, Seq::ZERO, first, DeltaForm::Joined).await;
    let entries = entries.map_err(|error| service_error_from_hub(session, &error.into()))?;
    let meta = entries.first().and_then(|entry| entry.meta.as_deref()?.get("goose")?.as_object().cloned());
    Ok(meta.unwrap_or_default())
}

/// The model that a file names, if we know its provider.
fn known_session_model(services: &Services, object: &Map<String, Value>) -> Option<String> {
    let provider = object.get("provider_name")?.as_str()?;
    let model = object.get("model_config")?.get("model_name")?.as_str()?;
    let known = services.models.providers().iter().any(|known| known.name == provider && known.configured);
    known.then(|| format!("{provider}/{model}"))
}

/// What a file says was spent: all but the last call, then the last call. 1.52 groups what older versions spread out.
fn exported_session_usage(object: &Map<String, Value>) -> Vec<Usage> {
    let number = |group: &str, flat: &str, key: &str| {
        let grouped = object.get(group).and_then(|group| group.get(key)?.as_u64());
        grouped.or_else(|| object.get(&format!("{flat}{key}"))?.as_u64()).unwrap_or(0)
    };
    let last = ["input_tokens", "output_tokens"].map(|key| number("usage", "", key));
    let all = ["input_tokens", "output_tokens"].map(|key| number("accumulated_usage", "accumulated_", key));
    let earlier = [all[0].saturating_sub(last[0]), all[1].saturating_sub(last[1])];
    let usage = |[input, output]: [u64; 2]| Usage { input, output, ..Usage::default() };
    let calls = [earlier, last].into_iter().filter(|call| call[0] + call[1] > 0);
    calls.map(usage).collect()
}
