//! Tools that the server lends to runs: a set says what its calls mean and does them, the rest is the same for all.

use async_trait::async_trait;
use gander_agent::driver::Guest;
use gander_domain::{ToolCall, ToolCallId, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::Signal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tools that belong together.
#[async_trait]
pub trait Toolset: Send + Sync {
    /// A call, read.
    type Wanted: Send;

    /// What they are.
    fn specs(&self) -> Vec<ToolSpec>;

    /// What a call means. None for any other tool; an error is what the model is told.
    fn read(&self, name: &str, arguments: &Value) -> Option<Result<Self::Wanted, String>>;

    /// A call in one line for people, and what kind of thing it does.
    fn title(&self, wanted: &Self::Wanted) -> (String, ToolKind);

    /// Does it. Either text is for the model.
    async fn carry_out(&self, wanted: Self::Wanted, signals: &mpsc::Sender<Signal>) -> Result<String, String>;
}

/// A set as runs use it: on offer where the mode says so.
pub struct Offered<T>(pub T);

#[async_trait]
impl<T: Toolset> Guest for Offered<T> {
    fn specs(&self) -> Vec<ToolSpec> {
        self.0.specs()
    }

    fn needed(&self) -> bool {
        false
    }

    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        let (title, kind) = match self.0.read(name, arguments)? {
            Ok(wanted) => self.0.title(&wanted),
            Err(wrong) => return Some(Err(ToolResult::text(ToolEnd::Failed, wrong))),
        };
        let (name, arguments, locations) = (name.to_owned(), arguments.clone(), Vec::new());
        Some(Ok(ToolCall { id, name, title, kind, arguments, locations, idempotent: kind == ToolKind::Read }))
    }

    async fn run(
        &self,
        call: &ToolCall,
        signals: &mpsc::Sender<Signal>,
        _cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        let done = match self.0.read(&call.name, &call.arguments)? {
            Ok(wanted) => self.0.carry_out(wanted, signals).await,
            Err(wrong) => Err(wrong),
        };
        Some(match done {
            Ok(text) => ToolResult::text(ToolEnd::Completed, text),
            Err(text) => ToolResult::text(ToolEnd::Failed, text),
        })
    }
}

/// A tool that takes these properties and no others.
pub fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    }
}

/// Arguments as the tool takes them, or what the model is told.
pub fn arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("arguments do not fit the tool: {error}"))
}
