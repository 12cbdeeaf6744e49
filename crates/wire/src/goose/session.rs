//! A session as goose's object, for lists, answers and exported files.

use gander_domain::{Policy, SessionId, SessionView, Timestamp};
use serde_json::{Map, Value, json};

use super::mode;
use super::types::cost_in_dollars;

/// What is known of a session in a list, without its log.
#[derive(Clone, Copy, Debug)]
pub struct SessionSummaryInput<'a> {
    pub session: SessionId,
    /// The folder it works in.
    pub workspace: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// When it began.
    pub created_at: Timestamp,
    /// When something happened last.
    pub updated_at: Timestamp,
    /// Put away?
    pub archived: bool,
    /// How many messages it holds.
    pub messages: u64,
}

/// A session with everything that is known of it. `kept` is what a client gave when it made or imported the session,
/// `policy` what runs unasked in it.
pub fn session_object(
    view: &SessionView,
    kept: Option<&Value>,
    default_model: Option<&str>,
    policy: Policy,
) -> Map<String, Value> {
    let mut object = session_summary(&SessionSummaryInput {
        session: view.session,
        workspace: &view.workspace,
        title: view.title.as_deref(),
        created_at: view.created_at,
        updated_at: view.updated_at,
        archived: view.archived,
        messages: view.messages,
    });
    let model = view.settings.model.as_deref().or(default_model);
    if let Some((provider, model)) = model.and_then(|model| model.split_once('/')) {
        object.insert("provider_name".to_owned(), json!(provider));
        object.insert("model_config".to_owned(), model_config_object(model, view));
    }
    object.insert("goose_mode".to_owned(), json!(mode::mode_of_policy(policy)));
    object.insert("agent_name".to_owned(), json!(view.settings.agent));
    object.insert("mode_slug".to_owned(), json!(view.settings.mode));
    add_token_fields(&mut object, view);
    if let Some(kept) = kept.and_then(Value::as_object) {
        object.extend(kept.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    object
}

/// A session in a list, with the names that adk2goose reads beside goose's own.
pub fn session_summary(summary: &SessionSummaryInput<'_>) -> Map<String, Value> {
    let SessionSummaryInput { session, workspace, title, created_at, updated_at, archived, messages } = *summary;
    let name = title.unwrap_or("New Chat");
    let updated = time_text(updated_at);
    let object = json!({
        "id": session, "working_dir": workspace, "name": name, "user_set_name": title.is_some(),
        "session_type": "user", "created_at": time_text(created_at), "updated_at": updated, "extension_data": {},
        "total_tokens": null, "input_tokens": null, "output_tokens": null, "accumulated_total_tokens": null,
        "accumulated_input_tokens": null, "accumulated_output_tokens": null, "accumulated_cost": null,
        "schedule_id": null, "recipe": null, "user_recipe_values": null, "conversation": null,
        "message_count": messages, "provider_name": null, "model_config": null, "goose_mode": "auto",
        "archived_at": archived.then(|| updated.clone()), "project_id": null,
        "path": session, "modified": updated,
        "metadata": { "working_dir": workspace, "description": name, "message_count": messages },
    });
    object.as_object().cloned().unwrap_or_default()
}

/// As goose writes times.
pub fn time_text(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map(|at| at.strftime("%FT%TZ").to_string()).unwrap_or_default()
}

fn model_config_object(model: &str, view: &SessionView) -> Value {
    let window = view.last_usage.as_ref().and_then(|usage| usage.window);
    json!({
        "model_name": model, "context_limit": window, "temperature": null, "max_tokens": null, "toolshim": false,
        "toolshim_model": null, "request_params": null, "reasoning": null,
    })
}

fn add_token_fields(object: &mut Map<String, Value>, view: &SessionView) {
    let all = view.spent;
    let last = view.last_usage.as_ref().map(|usage| (usage.input, usage.output));
    let (input, output) = (last.map(|(input, _)| input), last.map(|(_, output)| output));
    let values = [
        ("input_tokens", json!(input)),
        ("output_tokens", json!(output)),
        ("total_tokens", json!(last.map(|(input, output)| input + output))),
        ("accumulated_input_tokens", json!(all.input)),
        ("accumulated_output_tokens", json!(all.output)),
        ("accumulated_total_tokens", json!(all.input + all.output)),
        ("accumulated_cost", json!(cost_in_dollars(all.cost))),
    ];
    object.extend(values.map(|(key, value)| (key.to_owned(), value)));
}
