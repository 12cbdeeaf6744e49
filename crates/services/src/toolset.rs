//! Tools that the server lends to runs: a set says what its calls mean and does them, the rest is the same for all.

use async_trait::async_trait;
use gander_agent::tool_provider::ToolProvider;
use gander_domain::{ToolCall, ToolCallId, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::ToolEvent;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that belong together.
#[async_trait]
pub trait Toolset: Send + Sync {
    /// A call, read.
    type Call: Send;

    /// What they are.
    fn specs(&self) -> Vec<ToolSpec>;

    /// What a call means. None for any other tool; an error is what the model is told.
    fn parse_call(&self, name: &str, arguments: &Value) -> Option<Result<Self::Call, String>>;

    /// A call in one line for people, and what kind of thing it does.
    fn call_title(&self, call: &Self::Call) -> (String, ToolKind);

    /// Does it. Either text is for the model.
    async fn execute(&self, call: Self::Call, signals: &mpsc::Sender<ToolEvent>) -> Result<String, String>;
}

/// A set as runs use it: on offer where the mode says so.
pub struct ToolsetAdapter<T>(pub T);

#[async_trait]
impl<T: Toolset> ToolProvider for ToolsetAdapter<T> {
    fn specs(&self) -> Vec<ToolSpec> {
        self.0.specs()
    }

    fn needed(&self) -> bool {
        false
    }

    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        let (title, kind) = match self.0.parse_call(name, arguments)? {
            Ok(call) => self.0.call_title(&call),
            Err(wrong) => return Some(Err(ToolResult::text(ToolEnd::Failed, wrong))),
        };
        let (name, arguments, locations) = (name.to_owned(), arguments.clone(), Vec::new());
        Some(Ok(ToolCall { id, name, title, kind, arguments, locations, idempotent: kind == ToolKind::Read }))
    }

    async fn run(
        &self,
        call: &ToolCall,
        signals: &mpsc::Sender<ToolEvent>,
        _cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        let done = match self.0.parse_call(&call.name, &call.arguments)? {
            Ok(parsed) => self.0.execute(parsed, signals).await,
            Err(wrong) => Err(wrong),
        };
        Some(match done {
            Ok(text) => ToolResult::text(ToolEnd::Completed, text),
            Err(text) => ToolResult::text(ToolEnd::Failed, text),
        })
    }
}

/// A tool that takes these properties and no others.
pub fn tool_spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    }
}

/// Arguments as the tool takes them, or what the model is told.
pub fn parse_arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("arguments do not fit the tool: {error}"))
}
