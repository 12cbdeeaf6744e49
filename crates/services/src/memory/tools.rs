//! `remember_memory`, `retrieve_memories` and how they are forgotten: an agent's way to what it was asked to remember.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{Principal, ToolCall, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, ListedTool, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Memories, Memory, MemoryError, MemoryScope, memories_text};
use crate::tool_arguments::{parse_tool_arguments, tool_call_preview, tool_spec_with_arguments, tool_text_result};

/// Every category.
pub(super) const ALL: &str = "*";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RememberArguments {
    category: String,
    data: String,
    #[serde(default)]
    tags: Vec<String>,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryArguments {
    category: String,
    is_global: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextArguments {
    category: String,
    memory_content: String,
    is_global: bool,
}

/// A call, parsed.
enum MemoryCall {
    Remember(RememberArguments),
    Retrieve(CategoryArguments),
    Forget(CategoryArguments),
    ForgetOne(TextArguments),
}

/// The tools as lists show them.
pub fn listed_memory_tools() -> Vec<ListedTool> {
    MemoryToolKind::ALL.map(|kind| ListedTool { spec: memory_tool_spec(kind), group: Group::Memory }).into()
}

fn memory_tool_spec(kind: MemoryToolKind) -> ToolSpec {
    let text = || json!({"type": "string"});
    let global = json!({"type": "boolean", "description": "true: in every session, false: in this project"});
    match kind {
        MemoryToolKind::Remember => tool_spec_with_arguments(
            kind.name(),
            "Remembers something beyond this session. Use it when the person asks you to, or says what should always hold.",
            &json!({"category": text(), "data": text(), "tags": {"type": "array", "items": text()}, "is_global": global}),
            &["category", "data", "is_global"],
        ),
        MemoryToolKind::Retrieve => tool_spec_with_arguments(
            kind.name(),
            "Gives what is remembered of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        MemoryToolKind::Forget => tool_spec_with_arguments(
            kind.name(),
            "Forgets everything of a category; * for all of them.",
            &json!({"category": text(), "is_global": global}),
            &["category", "is_global"],
        ),
        MemoryToolKind::ForgetOne => tool_spec_with_arguments(
            kind.name(),
            "Forgets one memory of a category, by its text.",
            &json!({"category": text(), "memory_content": text(), "is_global": global}),
            &["category", "memory_content", "is_global"],
        ),
    }
}

/// Which of the tools.
#[derive(Clone, Copy)]
enum MemoryToolKind {
    Remember,
    Retrieve,
    Forget,
    ForgetOne,
}

impl MemoryToolKind {
    const ALL: [Self; 4] = [Self::Remember, Self::Retrieve, Self::Forget, Self::ForgetOne];

    /// As goose's users know them, with the extension's name before it.
    fn name(self) -> &'static str {
        match self {
            Self::Remember => "memory__remember_memory",
            Self::Retrieve => "memory__retrieve_memories",
            Self::Forget => "memory__remove_memory_category",
            Self::ForgetOne => "memory__remove_specific_memory",
        }
    }

    fn parse_call(self, arguments: &Value) -> Result<MemoryCall, ToolError> {
        match self {
            Self::Remember => parse_tool_arguments(arguments).map(MemoryCall::Remember),
            Self::Retrieve => parse_tool_arguments(arguments).map(MemoryCall::Retrieve),
            Self::Forget => parse_tool_arguments(arguments).map(MemoryCall::Forget),
            Self::ForgetOne => parse_tool_arguments(arguments).map(MemoryCall::ForgetOne),
        }
    }
}

/// One of the tools, for one person's sessions in one folder.
struct MemoryTool {
    kind: MemoryToolKind,
    memories: Memories,
    principal: Principal,
    folder: String,
}

/// The tools for a person's sessions in a folder.
pub fn memory_tools(memories: &Memories, principal: &Principal, folder: &str) -> Vec<Arc<dyn Tool>> {
    let tool =
        |kind| MemoryTool { kind, memories: memories.clone(), principal: principal.clone(), folder: folder.to_owned() };
    MemoryToolKind::ALL.map(|kind| Arc::new(tool(kind)) as Arc<dyn Tool>).into()
}

#[async_trait]
impl Tool for MemoryTool {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn group(&self) -> Group {
        Group::Memory
    }

    /// What is remembered is told to every later session: a person is asked about each call.
    fn effect(&self) -> ToolEffect {
        ToolEffect::Unknown
    }

    fn outlives_session(&self) -> bool {
        matches!(self.kind, MemoryToolKind::Remember)
    }

    fn spec(&self) -> ToolSpec {
        memory_tool_spec(self.kind)
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        Ok(tool_call_preview(memory_call_title(&self.kind.parse_call(arguments)?)))
    }

    async fn run(&self, call: &ToolCall, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        tool_text_result(self.execute_call(self.kind.parse_call(&call.arguments)?).await)
    }
}

/// A call in one line for people, and what kind of thing it does.
fn memory_call_title(call: &MemoryCall) -> (String, ToolKind) {
    let shown = |category: &str, is_global: bool| {
        let place = if is_global { "everywhere" } else { "in this project" };
        format!("{} ({place})", sanitize::sanitized_line(category))
    };
    match call {
        MemoryCall::Remember(RememberArguments { category, data, is_global, .. }) => {
            (format!("Remember in {}: {}", shown(category, *is_global), sanitize::sanitized_line(data)), ToolKind::Edit)
        }
        MemoryCall::Retrieve(CategoryArguments { category, is_global }) => {
            (format!("Recall {}", shown(category, *is_global)), ToolKind::Read)
        }
        MemoryCall::Forget(CategoryArguments { category, is_global }) => {
            (format!("Forget all of {}", shown(category, *is_global)), ToolKind::Delete)
        }
        MemoryCall::ForgetOne(TextArguments { category, memory_content, is_global }) => {
            let of = shown(category, *is_global);
            (format!("Forget in {of}: {}", sanitize::sanitized_line(memory_content)), ToolKind::Delete)
        }
    }
}

impl MemoryTool {
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
