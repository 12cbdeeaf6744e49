//! Prompt templates: those of a session's MCP servers, and those that somebody stored.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use bytes::Bytes;
use gander_domain::{Part, Role, SessionId};
use gander_mcp::PromptSpec;
use gander_services::direct_calls;
use gander_services::user_store::Collection;
use gander_wire::goose::projection;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{GooseCaller, HandlerResult, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, goose_bad_request, no_such_goose_session};
use crate::protocols::goose::{config, recipes};

#[derive(Deserialize)]
pub(crate) struct PromptsQuery {
    session_id: Option<String>,
}

/// `GET /agent/prompts`: the stored ones, and with a session those of its MCP servers.
pub(crate) async fn list_goose_prompts(
    caller: GooseCaller,
    query: Result<Query<PromptsQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(PromptsQuery { session_id }) = query.map_err(|error| goose_bad_request(error.body_text()))?;
    let stored = config::load_goose_config(caller.services(), &caller.peer, Collection::Prompt).await?;
    let mut prompts: Vec<Value> = stored
        .iter()
        .map(|(name, text)| json!({ "name": name, "description": null, "content": text, "arguments": [] }))
        .collect();
    if let Some(session) = session_id {
        let session: SessionId = session.parse().map_err(|_| no_such_goose_session())?;
        let offered = direct_calls::list_prompts_directly(caller.services(), &caller.identity, session).await?;
        prompts.extend(offered.iter().map(offered_prompt));
    }
    goose_json_response(json!({ "prompts": prompts }))
}

/// `POST /agent/prompts`: stores a prompt, or gives one with its arguments filled in. A prompt of an MCP server is
/// filled in by that server.
pub(crate) async fn use_goose_prompt(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct UsePrompt {
        name: String,
        session_id: Option<String>,
        extension: Option<String>,
        #[serde(alias = "template", alias = "text")]
        content: Option<String>,
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let UsePrompt { name, session_id, extension, content, arguments } = read_goose_json(&body)?;
    let services = caller.services();
    if let Some(content) = content {
        config::save_goose_config_key(services, &caller.peer, Collection::Prompt, &name, json!(content)).await?;
        return goose_json_response(json!({ "name": name, "content": content }));
    }
    if let Some(session) = session_id {
        let session: SessionId = session.parse().map_err(|_| no_such_goose_session())?;
        let named = extension.map_or_else(|| name.clone(), |extension| format!("{extension}:{name}"));
        let said =
            direct_calls::get_prompt_directly(services, &caller.identity, session, &named, arguments.clone()).await?;
        if let Some(said) = said {
            return goose_json_response(filled_prompt(&name, &said));
        }
    }
    let stored = config::load_goose_config(services, &caller.peer, Collection::Prompt).await?;
    let text = stored.get(&name);
    let text = text.ok_or_else(|| GooseError::new(StatusCode::NOT_FOUND, format!("no such prompt: {name}")))?;
    let filled = recipes::fill_recipe_placeholders(text, &Value::Object(arguments));
    let message = json!({ "role": "user", "content": { "type": "text", "text": filled } });
    goose_json_response(json!({ "name": name, "content": filled, "messages": [message] }))
}

fn offered_prompt(prompt: &PromptSpec) -> Value {
    let arguments = prompt.arguments.iter().map(
        |argument| json!({ "name": argument.name, "description": argument.description, "required": argument.required }),
    );
    json!({
        "name": prompt.name, "extension": prompt.server, "description": prompt.description, "content": null,
        "command": prompt.slash_command_name(), "arguments": arguments.collect::<Vec<_>>(),
    })
}

/// MCP's own form of a prompt that is filled in, one block to a message, and all its text beside it.
fn filled_prompt(name: &str, messages: &[(Role, Vec<Part>)]) -> Value {
    let role = |role: &Role| if *role == Role::Agent { "assistant" } else { "user" };
    let blocks: Vec<Value> = messages
        .iter()
        .flat_map(|(who, parts)| parts.iter().map(move |part| (who, part)))
        .map(|(who, part)| json!({ "role": role(who), "content": projection::goose_prompt_block(part) }))
        .collect();
    let text: Vec<&str> = blocks.iter().filter_map(|block| block["content"]["text"].as_str()).collect();
    json!({ "name": name, "content": text.join("\n\n"), "messages": blocks })
}
