//! What a turn asks about a call that the model made.

use gander_domain::{Answer, IdGenerator, Provenance, Question, SessionPolicy, ToolCall, ToolCallId, ToolResult};
use serde_json::Value;

/// Describes calls and knows what may run. Answers at once and without side effects, but for what it learns.
pub trait PermissionEvaluator: Send + Sync {
    /// What is this call, and may it run?
    fn evaluate(
        &self,
        policy: SessionPolicy,
        provenance: &Provenance,
        id: ToolCallId,
        name: &str,
        arguments: &Value,
        ids: &mut dyn IdGenerator,
    ) -> ToolDecision;

    /// What binds an approval to a call.
    fn fingerprint(&self, call: &ToolCall) -> String;

    /// A person answered about this call: "always" counts from now on.
    fn record_answer(&self, call: &ToolCall, question: &Question, answer: &Answer);
}

/// What a call is, and whether it may run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolDecision {
    /// It may run.
    Run(ToolCall),
    /// A person has to say yes first.
    Ask(ToolCall, Question),
    /// A rule or the policy forbids it; the model is told.
    Refuse(ToolCall, ToolResult),
    /// No such tool, or wrong arguments; the model is told.
    Bad(ToolResult),
}
