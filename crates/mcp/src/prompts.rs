//! Prompts of servers, as a person calls them: `/server:prompt and what it wants to know`.

use std::sync::Arc;

use gander_domain::{Part, Role};
use gander_tools::Limits;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, PromptMessage, Role as McpRole};
use serde_json::{Map, Value};

use super::catalogue::PromptSpec;
use super::content;
use super::server::McpServer;

impl PromptSpec {
    /// What people type after a slash.
    pub fn slash_command_name(&self) -> String {
        format!("{}:{}", self.server, self.name)
    }
}

/// The name that a person typed after a slash, and the words after it.
pub(super) fn typed_prompt(parts: &[Part]) -> Option<(&str, &str)> {
    let Some(Part::Text { text }) = parts.first() else { return None };
    let typed = text.trim().strip_prefix('/')?;
    Some(typed.split_once(char::is_whitespace).unwrap_or((typed, "")))
}

/// What a prompt says, filled in with the words after its name.
pub(super) async fn fill_prompt(
    servers: &[Arc<McpServer>],
    prompt: &PromptSpec,
    words: &str,
    limits: &Limits,
) -> Result<Vec<Part>, String> {
    let messages = get_prompt(servers, prompt, parse_prompt_arguments(prompt, words)?, limits).await?;
    Ok(messages.into_iter().flat_map(|(_, parts)| parts).collect())
}

/// What a prompt says with these arguments, message by message.
pub(super) async fn get_prompt(
    servers: &[Arc<McpServer>],
    prompt: &PromptSpec,
    arguments: Map<String, Value>,
    limits: &Limits,
) -> Result<Vec<(Role, Vec<Part>)>, String> {
    let server = servers.iter().find(|server| server.name == prompt.server).ok_or("the server is gone")?;
    let line = server.wait_for_connection().await?;
    let params = GetPromptRequestParams::new(prompt.name.clone()).with_arguments(arguments);
    let answer = line.peer.get_prompt_once(params).await.map_err(|error| line.note_unauthorized(error).to_string())?;
    let GetPromptResponse::Complete(result) = answer else {
        return Err("the server wants to know more first, which a prompt cannot tell it".to_owned());
    };
    let message = |message: PromptMessage| {
        let role = if message.role == McpRole::User { Role::User } else { Role::Agent };
        (role, content::content_to_parts(std::iter::once(message.content), limits))
    };
    Ok(result.messages.into_iter().map(message).collect())
}

/// The first argument that a prompt must have and was not given.
pub(super) fn missing_prompt_argument<'a>(prompt: &'a PromptSpec, given: &Map<String, Value>) -> Option<&'a str> {
    let missing = prompt.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name));
    missing.map(|argument| argument.name.as_str())
}

/// `name=value` for each, or one word for each in order; the last takes the rest.
fn parse_prompt_arguments(prompt: &PromptSpec, words: &str) -> Result<Map<String, Value>, String> {
    let known = |word: &str| {
        let (name, value) = word.split_once('=')?;
        prompt.arguments.iter().any(|argument| argument.name == name).then(|| (name.to_owned(), Value::from(value)))
    };
    let named: Option<Map<String, Value>> = words.split_whitespace().map(known).collect();
    let given = match named {
        Some(named) if !named.is_empty() => named,
        Some(_) | None => {
            let words = words.trim().splitn(prompt.arguments.len().max(1), char::is_whitespace).map(str::trim);
            let pairs = prompt.arguments.iter().zip(words.filter(|word| !word.is_empty()));
            pairs.map(|(argument, word)| (argument.name.clone(), Value::from(word))).collect()
        }
    };
    match missing_prompt_argument(prompt, &given) {
        Some(missing) => Err(format!("the prompt {} wants to know: {missing}", prompt.slash_command_name())),
        None => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalogue::PromptArgument;
    use super::*;

    fn prompt() -> PromptSpec {
        let argument = |name: &str, required| PromptArgument { name: name.to_owned(), description: None, required };
        let arguments = vec![argument("city", true), argument("state", false)];
        PromptSpec { server: "s".to_owned(), name: "p".to_owned(), description: String::new(), arguments }
    }

    #[test]
    fn words_fill_in_a_prompt() {
        let filled = |words: &str| parse_prompt_arguments(&prompt(), words).map(Value::Object);
        assert_eq!(filled("Bern"), Ok(json!({"city": "Bern"})));
        assert_eq!(filled(" Bern  the old town "), Ok(json!({"city": "Bern", "state": "the old town"})));
        assert_eq!(filled("state=BE city=Bern"), Ok(json!({"state": "BE", "city": "Bern"})));
        assert_eq!(filled(""), Err("the prompt s:p wants to know: city".to_owned()));
    }
}
