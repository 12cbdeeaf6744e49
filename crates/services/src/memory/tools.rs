//! `remember_memory`, `retrieve_memories` and how they are forgotten: an agent's way to what it was asked to remember.

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolKind, ToolSpec};
use gander_tools::{BuiltIn, ToolEvent};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Memories, Memory, MemoryError, MemoryScope, memories_text};
use crate::toolset::{Toolset, parse_arguments, tool_spec};

/// Every category.
pub(super) const ALL: &str = "*";

/// The memories of one person, for sessions in one folder.
pub struct MemoryTools {
    /// Everybody's.
    pub memories: Memories,
    /// Whose session it is.
    pub principal: Principal,
    /// The folder it works in.
    pub folder: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberArguments {
    category: String,
    data: String,
    #[serde(default)]
    tags: Vec<String>,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryArguments {
    category: String,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextArguments {
    category: String,
    memory_content: String,
    is_global: bool,
}

/// A call, read.
pub enum MemoryCall {
    Remember(RememberArguments),
    Retrieve(CategoryArguments),
    Forget(CategoryArguments),
    ForgetOne(TextArguments),
}

/// The tools, as goose's users know them.
pub fn memory_tool_specs() -> Vec<ToolSpec> {
    let named = |name: &str| format!("{}{name}", BuiltIn::MEMORY);
    let text = || json!({"type": "string"});
    let global = json!({"type": "boolean", "description": "true: in every session, false: in this project"});
    vec![
        tool_spec(
            &named("remember_memory"),
            "Remembers something beyond this session. Use it when the person asks you to, or says what should always hold.",
            &json!({"category": text(), "data": text(), "tags": {"type": "array", "items": text()}, "is_global": global}),
            &["category", "data", "is_global"],
        ),
        tool_spec(
            &named("retrieve_memories"),
            "Gives what is remembered of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        tool_spec(
            &named("remove_memory_category"),
            "Forgets everything of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        tool_spec(
            &named("remove_specific_memory"),
            "Forgets one memory of a category, by its text.",
            &json!({"category": text(), "memory_content": text(), "is_global": global}),
            &["category", "memory_content", "is_global"],
        ),
    ]
}

#[async_trait]
impl Toolset for MemoryTools {
    type Call = MemoryCall;

    fn specs(&self) -> Vec<ToolSpec> {
        memory_tool_specs()
    }

    fn parse_call(&self, name: &str, arguments: &Value) -> Option<Result<MemoryCall, String>> {
        Some(match name.strip_prefix(BuiltIn::MEMORY)? {
            "remember_memory" => parse_arguments(arguments).map(MemoryCall::Remember),
            "retrieve_memories" => parse_arguments(arguments).map(MemoryCall::Retrieve),
            "remove_memory_category" => parse_arguments(arguments).map(MemoryCall::Forget),
            "remove_specific_memory" => parse_arguments(arguments).map(MemoryCall::ForgetOne),
            _ => return None,
        })
    }

    fn call_title(&self, call: &MemoryCall) -> (String, ToolKind) {
        let shown = |category: &str, is_global: bool| {
            let place = if is_global { "everywhere" } else { "in this project" };
            format!("{} ({place})", sanitize::visible_line(category))
        };
        match call {
            MemoryCall::Remember(RememberArguments { category, data, is_global, .. }) => (
                format!("Remember in {}: {}", shown(category, *is_global), sanitize::visible_line(data)),
                ToolKind::Edit,
            ),
            MemoryCall::Retrieve(CategoryArguments { category, is_global }) => {
                (format!("Recall {}", shown(category, *is_global)), ToolKind::Read)
            }
            MemoryCall::Forget(CategoryArguments { category, is_global }) => {
                (format!("Forget all of {}", shown(category, *is_global)), ToolKind::Delete)
            }
            MemoryCall::ForgetOne(TextArguments { category, memory_content, is_global }) => {
                let of = shown(category, *is_global);
                (format!("Forget in {of}: {}", sanitize::visible_line(memory_content)), ToolKind::Delete)
            }
        }
    }

    async fn execute(&self, call: MemoryCall, _signals: &mpsc::Sender<ToolEvent>) -> Result<String, String> {
        self.execute_call(call).await.map_err(|error| error.to_string())
    }
}

impl MemoryTools {
    async fn execute_call(&self, call: MemoryCall) -> Result<String, MemoryError> {
        let (memories, principal) = (&self.memories, &self.principal);
        match call {
            MemoryCall::Remember(RememberArguments { category, data, tags, is_global }) => {
                let memory = Memory { place: self.memory_scope(is_global), category, text: data, tags };
                memories.remember(principal, memory).await?;
                Ok("remembered".to_owned())
            }
            MemoryCall::Retrieve(CategoryArguments { category, is_global }) => {
                let place = self.memory_scope(is_global);
                let mut found = memories.list(principal).await?;
                found.retain(|memory| memory.is_in_category(&place, &category));
                Ok(if found.is_empty() { "nothing is remembered there".to_owned() } else { memories_text(&found) })
            }
            MemoryCall::Forget(CategoryArguments { category, is_global }) => {
                let count = memories.forget_category(principal, &self.memory_scope(is_global), &category).await?;
                Ok(format!("forgot {count} memories"))
            }
            MemoryCall::ForgetOne(TextArguments { category, memory_content, is_global }) => {
                memories.forget_one(principal, &self.memory_scope(is_global), &category, &memory_content).await?;
                Ok("forgot it".to_owned())
            }
        }
    }

    fn memory_scope(&self, is_global: bool) -> MemoryScope {
        if is_global { MemoryScope::Everywhere } else { MemoryScope::Project(self.folder.clone()) }
    }
}
