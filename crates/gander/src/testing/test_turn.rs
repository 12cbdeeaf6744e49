//! What a client saw of one turn.

use serde_json::Value;

/// What a client saw of one turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestTurn {
    /// What the agent said.
    pub text: String,
    /// What it thought.
    pub thoughts: String,
    /// Its tool calls, in order.
    pub tool_calls: Vec<TestToolCall>,
    /// The entries of its last plan.
    pub plan: Vec<String>,
    /// Titles of the permission requests and forms it sent.
    pub questions: Vec<String>,
    /// Why it stopped, as ACP spells it: `end_turn`, `cancelled` and so on.
    pub stop_reason: String,
    /// Every update as it came.
    pub updates: Vec<Value>,
}

/// A tool call as a client sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestToolCall {
    /// The protocol's id.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// `pending`, `in_progress`, `completed` or `failed`.
    pub status: String,
    /// What it shows, as text.
    pub output: String,
}

impl TestTurn {
    /// Takes in a session update.
    pub(super) fn handle_update(&mut self, update: Value) {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.text.push_str(text),
            "agent_thought_chunk" => self.thoughts.push_str(text),
            "tool_call" | "tool_call_update" => self.handle_tool_call(&update),
            "plan" => {
                let entries = update["entries"].as_array().into_iter().flatten();
                self.plan = entries.filter_map(|entry| entry["content"].as_str()).map(str::to_owned).collect();
            }
            _ => {}
        }
        self.updates.push(update);
    }

    fn handle_tool_call(&mut self, update: &Value) {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let place = self.tool_calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            self.tool_calls.push(TestToolCall { id: id.to_owned(), ..TestToolCall::default() });
            self.tool_calls.len() - 1
        });
        let call = &mut self.tool_calls[place];
        if let Some(title) = update["title"].as_str() {
            title.clone_into(&mut call.title);
        }
        if let Some(status) = update["status"].as_str() {
            status.clone_into(&mut call.status);
        }
        if let Some(content) = update["content"].as_array() {
            let texts = content.iter().filter_map(|item| item["content"]["text"].as_str());
            call.output = texts.collect::<Vec<_>>().join("\n");
        }
    }
}
