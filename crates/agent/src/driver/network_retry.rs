//! A command that failed for want of the network, and a person who may let it run again with it.

use gander_domain::sanitize;
use gander_domain::{Choice, ChoiceKind, QuestionKind, QuestionOrigin, ToolCall, ToolResult};
use gander_tools::sandbox::network_failure;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::delegate::UserPrompter;

/// A longer line would not be shown whole in the question.
const MAX_LINE_CHARS: usize = 200;

/// The same call with the network, if its result says that this is what it missed.
pub(super) fn retry_call_with_network(call: &ToolCall, result: &ToolResult) -> Option<ToolCall> {
    let missed = result.raw.as_ref().is_some_and(|raw| raw[network_failure::MARK] == Value::Bool(true));
    let mut again = call.clone();
    again.arguments.as_object_mut().filter(|_| missed)?.insert("network".to_owned(), Value::Bool(true));
    Some(again)
}

/// True if somebody says yes to exactly this line. With nobody there it is a no.
pub(super) async fn is_network_retry_granted(
    people: &dyn UserPrompter,
    again: &ToolCall,
    cancel: &CancellationToken,
) -> bool {
    let line = again.arguments["command"].as_str().map(sanitize::sanitized_line).unwrap_or_default();
    if line.is_empty() || line.chars().count() > MAX_LINE_CHARS {
        return false;
    }
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_once", "Retry with network access", ChoiceKind::AllowOnce),
        choice("reject_once", "No", ChoiceKind::RejectOnce),
    ];
    let title = format!("The command failed without network access. Retry with network? {line}");
    tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        reply = people.ask(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => reply.is_allowed(),
    }
}
