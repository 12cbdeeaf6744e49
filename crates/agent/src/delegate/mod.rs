//! `delegate`: hands sub-tasks to sub-agents, those that do not depend on each other at the same time.

mod parse_subtasks;
mod run_subtasks;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use gander_domain::{
    Plan, QuestionKind, QuestionOrigin, Reply, SubagentCall, ToolCall, ToolCallId, ToolKind, ToolResult, ToolSpec,
};
use gander_tools::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolEvent, ToolPreview, Workspace};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use parse_subtasks::SubTask;
pub(crate) use parse_subtasks::{MAX_SUBTASKS, parse_subtasks};

/// The tool's name.
pub const NAME: &str = gander_tools::DELEGATE;

/// Starts sub-agents for one run, and knows what it may spend.
#[async_trait]
pub trait SubagentRunner: Send + Sync {
    /// Says what is wrong with a task before anything starts.
    fn check(&self, task: &SubTask) -> Result<(), String>;

    /// Carries out a task to its end. The same call and task again is the same sub-agent, which is found and waited for.
    /// It stops soon after the parent's cancel.
    async fn run(&self, call: ToolCallId, task: &SubTask, parent: Parent<'_>) -> SubResult;
}

/// What a sub-agent has of the run that wants it.
#[derive(Clone, Copy)]
pub struct Parent<'a> {
    /// Asks the user what it asks.
    pub prompter: &'a dyn UserPrompter,
    /// Where it is told what it pays for.
    pub signals: &'a mpsc::Sender<ToolEvent>,
    /// Stops it.
    pub cancel: &'a CancellationToken,
}

/// Asks the user behind a run.
#[async_trait]
pub trait UserPrompter: Send + Sync {
    /// With nobody there the answer is `Cancelled`.
    async fn ask(&self, title: &str, ask: QuestionKind, origin: QuestionOrigin) -> Reply;

    /// Asks them what a sub-agent asks, with what it wants to do.
    async fn ask_for_subagent(
        &self,
        title: &str,
        ask: QuestionKind,
        origin: QuestionOrigin,
        subagent: Option<Box<SubagentCall>>,
    ) -> Reply;
}

/// How a sub-task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubResult {
    pub end: SubEnd,
    /// What the sub-agent said last, or why it could not.
    pub text: String,
    /// Where it can be read: the id of its session.
    pub session: String,
}

/// How a sub-task ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubEnd {
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// `delegate` in one session.
struct Delegate {
    subagents: Arc<dyn SubagentRunner>,
    prompter: Arc<dyn UserPrompter>,
    plan: Arc<Mutex<Plan>>,
}

/// The tool for a session: who starts sub-agents, who asks the user what they ask, and the session's plan, after which
/// the sub-tasks are shown.
pub fn delegate_tool(
    subagents: Arc<dyn SubagentRunner>,
    prompter: Arc<dyn UserPrompter>,
    plan: Arc<Mutex<Plan>>,
) -> Arc<dyn Tool> {
    Arc::new(Delegate { subagents, prompter, plan })
}

#[async_trait]
impl Tool for Delegate {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> Group {
        Group::Delegate
    }

    /// What sub-agents do asks for itself.
    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn spec(&self) -> ToolSpec {
        delegate_spec()
    }

    /// Running a call twice is running it once: the same call finds the sub-agents that it began.
    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let tasks = parse_subtasks::parse_subtasks(arguments).map_err(ToolError::failed)?;
        tasks.iter().try_for_each(|task| self.subagents.check(task)).map_err(ToolError::failed)?;
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let title = gander_domain::sanitize::sanitized_line(&format!("Delegate: {}", names.join(", ")));
        Ok(ToolPreview { title, kind: ToolKind::Other, locations: Vec::new(), idempotent: true })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let tasks = parse_subtasks::parse_subtasks(&call.arguments).map_err(ToolError::failed)?;
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let parent = Parent { prompter: &*self.prompter, signals: &context.signals, cancel: &context.cancel };
        Ok(run_subtasks::run_subtasks(call.id, tasks, DelegateContext { subagents: &*self.subagents, plan, parent })
            .await)
    }
}

/// What one call of the tool runs with.
pub(crate) struct DelegateContext<'a> {
    subagents: &'a dyn SubagentRunner,
    /// The plan as it was when the call began.
    plan: Plan,
    parent: Parent<'a>,
}

/// The tool as a model sees it.
pub fn delegate_spec() -> ToolSpec {
    ToolSpec {
        name: NAME.into(),
        description:
            "Splits work among sub-agents. Each task is carried out by an agent of its own that sees nothing of \
                      this conversation, so its prompt must say everything. Tasks run at the same time unless one \
                      waits for another by `after`; then it is given the other's result. Gives back all results."
                .into(),
        schema: json!({
            "type": "object",
            "properties": {
                "tasks": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": parse_subtasks::MAX_SUBTASKS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "description": "Short and unlike the others"},
                            "prompt": {"type": "string", "description": "Everything the sub-agent has to know"},
                            "mode": {"type": "string", "description": "Such as specialist (the default), backend or qa"},
                            "model": {"type": "string", "description": "provider/model"},
                            "max_turns": {"type": "integer", "minimum": 1, "maximum": 1000},
                            "max_tokens": {"type": "integer", "minimum": 1, "description": "What it may use in all"},
                            "after": {"type": "array", "items": {"type": "string"}, "description": "Names of tasks"}
                        },
                        "required": ["name", "prompt"],
                        "additionalProperties": false
                    }
                }
            },
            "required": ["tasks"],
            "additionalProperties": false
        }).into(),
    }
}
