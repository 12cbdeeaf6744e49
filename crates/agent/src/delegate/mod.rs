//! `delegate`: hands sub-tasks to sub-agents, those that do not depend on each other at the same time.

mod scheduler;
mod subtasks;

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{
    Plan, QuestionKind, QuestionOrigin, Reply, SubagentCall, ToolCall, ToolCallId, ToolEnd, ToolResult, ToolSpec,
};
use gander_tools::ToolEvent;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::tool_provider::plain_call;

pub use subtasks::SubTask;
pub(crate) use subtasks::{MAX_SUBTASKS, parse_subtasks};

/// The tool's name.
pub const NAME: &str = gander_tools::DELEGATE;

/// Whoever can start sub-agents for one run, and knows what it may spend.
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
    /// Who is asked what it asks.
    pub people: &'a dyn UserPrompter,
    /// Where it is told what it pays for.
    pub signals: &'a mpsc::Sender<ToolEvent>,
    /// Stops it.
    pub cancel: &'a CancellationToken,
}

/// The people behind a run.
#[async_trait]
pub trait UserPrompter: Send + Sync {
    /// Asks them; with nobody there the answer is `Cancelled`.
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

/// What a call of the tool needs to run.
pub(crate) struct DelegateContext<'a> {
    /// Who starts sub-agents.
    pub office: &'a dyn SubagentRunner,
    /// Who is asked what sub-agents ask.
    pub people: &'a dyn UserPrompter,
    /// The plan so far: the sub-tasks are shown after it.
    pub plan: Plan,
    /// Where it is told how far they are.
    pub signals: mpsc::Sender<ToolEvent>,
    /// Stops it.
    pub cancel: CancellationToken,
}

impl DelegateContext<'_> {
    fn parent(&self) -> Parent<'_> {
        Parent { people: self.people, signals: &self.signals, cancel: &self.cancel }
    }
}

/// The tool as a model sees it.
pub fn spec() -> ToolSpec {
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
                    "maxItems": subtasks::MAX_SUBTASKS,
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
        }),
    }
}

/// The call as people see it, or what is wrong with it. Running it twice is running it once.
pub(crate) fn describe(office: &dyn SubagentRunner, id: ToolCallId, arguments: &Value) -> Result<ToolCall, ToolResult> {
    let wrong = |why: String| ToolResult::text(ToolEnd::Failed, why);
    let tasks = subtasks::parse_subtasks(arguments).map_err(wrong)?;
    tasks.iter().try_for_each(|task| office.check(task)).map_err(wrong)?;
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    let title = gander_domain::sanitize::visible_line(&format!("Delegate: {}", names.join(", ")));
    Ok(plain_call(id, NAME, title, arguments))
}

/// Carries out a call.
pub(crate) async fn run(call: &ToolCall, context: DelegateContext<'_>) -> ToolResult {
    match subtasks::parse_subtasks(&call.arguments) {
        Ok(tasks) => scheduler::run_subtasks(call.id, tasks, context).await,
        Err(why) => ToolResult::text(ToolEnd::Failed, why),
    }
}

/// Who starts sub-agents, if anybody does.
pub type OptionalSubagents = Option<Arc<dyn SubagentRunner>>;
