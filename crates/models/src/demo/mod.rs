//! The scripted demo: answers without any model, and says so.

mod script;
mod timeline;

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{Message, Part, Role, ToolContent, ToolEnd, ToolResult, ToolSpec};

use self::script::{ScriptedCall, Step};
use self::timeline::TimedEvents;
use super::history::{self, history_tool_uses};
use super::{Model, ModelError, ModelInfo, ModelStream, Request};

/// The tool that keeps a plan, and the one that asks for its approval: each mode has one of them, or none.
const PLAN_TOOL: &str = "plan";
const PROPOSE_TOOL: &str = "propose_plan";

/// Plays scripts: by words of the last message, or one that the message carries.
pub struct Demo {
    info: ModelInfo,
}

impl Demo {
    /// A demo under this name.
    pub fn new(info: ModelInfo) -> Self {
        Self { info }
    }

    fn schedule_answer(&self, request: &Request) -> Result<Vec<TimedEvents>, ModelError> {
        let input = estimate_demo_tokens(request);
        if let Some(window) = self.info.window.filter(|window| input > *window) {
            let message = format!("the conversation does not fit into the demo's window, tokens: {input} of {window}");
            return Err(ModelError::ContextTooLong(message));
        }
        Ok(timeline::schedule_played_events(&self.next_call(request)?, input, &demo_tool_results_text(request)))
    }

    /// The steps of this call: the script for what was asked last, as far as it has come.
    fn next_call(&self, request: &Request) -> Result<ScriptedCall, ModelError> {
        let (asked, since) = last_demo_request(request);
        let done = since.iter().filter(|message| message.role == Role::Agent && !message.interrupted).count();
        let mut calls = match script::parse_demo_script(&asked) {
            Some(script) => script?,
            None => find_demo_scene(&asked, &request.tools),
        };
        let after_tools = vec![Step { results: true, ..Step::default() }];
        Ok(if done < calls.len() { calls.swap_remove(done) } else { after_tools })
    }
}

#[async_trait]
impl Model for Demo {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError> {
        timeline::play_events(self.schedule_answer(&request)?)
    }
}

/// The text of the last message of a person, and what followed.
fn last_demo_request(request: &Request) -> (String, &[Arc<Message>]) {
    let at = request.messages.iter().rposition(|message| message.role == Role::User);
    at.map_or((String::new(), &[]), |at| (request.messages[at].plain_text(), &request.messages[at + 1..]))
}

/// The scene of the first word that has one. Not every mode keeps a plan: then one is proposed, or told as text.
fn find_demo_scene(asked: &str, tools: &[ToolSpec]) -> Vec<ScriptedCall> {
    let calls = demo_scene_calls(asked);
    let offers = |name: &str| tools.iter().any(|tool| tool.name == name);
    let plans = calls.iter().flatten().any(|step| step.tool.as_deref() == Some(PLAN_TOOL));
    match plans && !offers(PLAN_TOOL) {
        true => script::scripted_plan_without_tool(offers(PROPOSE_TOOL).then_some(PROPOSE_TOOL)),
        false => calls,
    }
}

fn demo_scene_calls(asked: &str) -> Vec<ScriptedCall> {
    let scenes = script::demo_scenes();
    let words: Vec<String> = asked.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase).collect();
    let wanted = words.iter().find_map(|word| scenes.iter().position(|scene| scene.word == *word));
    let is_help = words.iter().any(|word| word == "help");
    match wanted {
        Some(at) if !is_help => scenes.into_iter().nth(at).map(|scene| scene.calls).unwrap_or_default(),
        Some(_) | None => {
            let known = scenes.iter().map(|scene| format!("- `{}`: {}\n", scene.word, scene.about)).collect();
            vec![vec![Step { text: Some(demo_introduction(known)), chunks: Some(8), ..Step::default() }]]
        }
    }
}

fn demo_introduction(known: String) -> String {
    format!(
        "Hello! I am gander's scripted demo, not a language model: I cannot understand you, but I can show what \
         this server does. Send one of these words:\n\n{known}- `help`: this list\n\nTo talk to a real model: `gander \
         setup`. Or set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY where you run gander, or start a local server such \
         as Ollama.\n"
    )
}

/// What the tools gave since the last message of a person.
fn demo_tool_results_text(request: &Request) -> String {
    let (_, since) = last_demo_request(request);
    let results = history::history_tool_results(since);
    let calls = since.iter().flat_map(|message| history_tool_uses(&message.parts));
    let lines: String = calls.map(|(id, name, _)| describe_demo_result(name, results.get(&id).copied())).collect();
    if lines.is_empty() { "That was all.".into() } else { format!("The tools are done:\n\n{lines}") }
}

fn describe_demo_result(name: &str, result: Option<&ToolResult>) -> String {
    let Some(result) = result else { return format!("- `{name}` gave no answer\n") };
    let how = match result.end {
        ToolEnd::Completed => "is completed",
        ToolEnd::Failed => "failed",
        ToolEnd::Rejected => "was not allowed",
        ToolEnd::Cancelled => "was cancelled",
        ToolEnd::Interrupted => "was interrupted",
    };
    let text = |content: &ToolContent| {
        if let ToolContent::Part { part: Part::Text { text } } = content { Some(text.trim().to_owned()) } else { None }
    };
    let text = result.content.iter().find_map(text).unwrap_or_default();
    match text.lines().next().map(|first| (first, text.lines().count())) {
        Some((first, 1)) => format!("- `{name}` {how}: {first}\n"),
        Some((first, lines)) => format!("- `{name}` {how}, {lines} lines: {first}\n"),
        None => format!("- `{name}` {how}\n"),
    }
}

/// About how many tokens the request has, at four bytes each.
fn estimate_demo_tokens(request: &Request) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let bytes: usize = parts.map(demo_part_bytes).sum();
    (bytes + request.system.len()) as u64 / 4 + 1
}

fn demo_part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::ToolUse { arguments, .. } => arguments.to_string().len(),
        Part::ToolResult { result, .. } => result.content.iter().map(demo_content_bytes).sum(),
        Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::Unknown(_) => 0,
    }
}

fn demo_content_bytes(content: &ToolContent) -> usize {
    match content {
        ToolContent::Part { part } => demo_part_bytes(part),
        ToolContent::Diff { .. } | ToolContent::Terminal { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
