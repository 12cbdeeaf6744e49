//! A session as goose's object, for lists, answers and exported files.

use gander_domain::{ModelParams, Policy, SessionId, SessionView, Timestamp};
use serde_json::{Map, Value, json};

use super::mode;
use super::types::goose_cost_in_dollars;

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
    /// What may run unasked.
    pub policy: Policy,
    pub tokens: SummaryTokens,
}

/// What a session used, as far as a list shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummaryTokens {
    /// Tokens read by all its model calls.
    pub input: u64,
    /// Tokens written by all of them.
    pub output: u64,
    /// Millionths of a US dollar.
    pub cost: u64,
    /// Tokens read and written by its last call.
    pub last_call: Option<(u64, u64)>,
}

impl<'a> SessionSummaryInput<'a> {
    /// What a whole view says; `policy` is what runs unasked in it.
    pub fn from_view(view: &'a SessionView, policy: Policy) -> Self {
        let last_call = view.last_usage.as_ref().map(|usage| (usage.input, usage.output));
        Self {
            session: view.session,
            workspace: &view.workspace,
            title: view.title.as_deref(),
            created_at: view.created_at,
            updated_at: view.updated_at,
            archived: view.archived,
            messages: view.messages,
            policy,
            tokens: SummaryTokens {
                input: view.spent.input,
                output: view.spent.output,
                cost: view.spent.cost,
                last_call,
            },
        }
    }
}

/// A session with everything that is known of it. `kept` is what a client gave when it made or imported the session,
/// `policy` what runs unasked in it.
pub fn goose_session_object(
    view: &SessionView,
    kept: Option<&Value>,
    default_model: Option<&str>,
    policy: Policy,
) -> Map<String, Value> {
    let mut object = goose_session_summary(&SessionSummaryInput::from_view(view, policy));
    let model = view.settings.model.as_deref().or(default_model);
    if let Some((provider, model)) = model.and_then(|model| model.split_once('/')) {
        object.insert("provider_name".to_owned(), json!(provider));
        object.insert("model_config".to_owned(), goose_session_model_config(model, view));
    }
    object.insert("agent_name".to_owned(), json!(view.settings.agent));
    object.insert("mode_slug".to_owned(), json!(view.settings.mode));
    if let Some(kept) = kept.and_then(Value::as_object) {
        object.extend(kept.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    object
}

/// A session in a list, with the names that adk2goose reads beside goose's own.
pub fn goose_session_summary(summary: &SessionSummaryInput<'_>) -> Map<String, Value> {
    let SessionSummaryInput { session, workspace, title, created_at, updated_at, archived, messages, policy, tokens } =
        *summary;
    let SummaryTokens { input, output, cost, last_call } = tokens;
    let name = title.unwrap_or("New Chat");
    let updated = goose_session_time(updated_at);
    let object = json!({
        "id": session, "working_dir": workspace, "name": name, "user_set_name": title.is_some(),
        "session_type": "user", "created_at": goose_session_time(created_at), "updated_at": updated, "extension_data": {},
        "total_tokens": last_call.map(|(input, output)| input + output),
        "input_tokens": last_call.map(|(input, _)| input), "output_tokens": last_call.map(|(_, output)| output),
        "accumulated_total_tokens": input + output, "accumulated_input_tokens": input,
        "accumulated_output_tokens": output, "accumulated_cost": goose_cost_in_dollars(cost),
        "schedule_id": null, "recipe": null, "user_recipe_values": null, "conversation": null,
        "message_count": messages, "provider_name": null, "model_config": null, "goose_mode": mode::goose_mode_of_policy(policy),
        "archived_at": archived.then(|| updated.clone()), "project_id": null,
        "path": session, "modified": updated,
        "metadata": { "working_dir": workspace, "description": name, "message_count": messages },
    });
    object.as_object().cloned().unwrap_or_default()
}

/// As goose writes times.
pub fn goose_session_time(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map(|at| at.strftime("%FT%TZ").to_string()).unwrap_or_default()
}

fn goose_session_model_config(model: &str, view: &SessionView) -> Value {
    let ModelParams { window, request } = &view.settings.model_params;
    let window = window.or_else(|| view.last_usage.as_ref()?.window);
    json!({
        "model_name": model, "context_limit": window,
        "temperature": view.settings.temperature.map(|hundredths| f64::from(hundredths) / 100.0), "max_tokens": null,
        "toolshim": false, "toolshim_model": null, "request_params": (!request.is_empty()).then_some(request),
        "reasoning": null,
    })
}
