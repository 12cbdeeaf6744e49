//! A command that changed files which make something run, and a person who may let it.

use gander_domain::{
    Choice, ChoiceKind, Part, QuestionKind, QuestionOrigin, ToolCall, ToolContent, ToolEnd, ToolResult,
};
use gander_tools::protected::{OnChange, SetAsideChanges};
use gander_tools::{ToolContext, ToolEvent};

use super::session_tools::SessionTools;

/// Runs a built-in tool. Nothing runs in a folder while somebody is asked about what a command changed there.
pub(super) async fn run(tools: &SessionTools, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let here = tools.host.is_here() || !tools.host.offers().terminal;
    let work = async {
        match call.name.as_str() {
            "shell" if here && tools.toolbox.is_sandboxed() => run_watched(tools, call, context).await,
            "write" | "edit" => run_accepted(tools, call, context).await,
            _ => tools.toolbox.run(call, context).await,
        }
    };
    work.await
}

/// The person was asked about this very file, or need not be: no command is blamed for it.
async fn run_accepted(tools: &SessionTools, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected(), tools.toolbox.writable(&tools.workspace));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled(),
        free = protected.undisputed(&folders) => {
            if let Err(error) = free {
                return failed_watch(&error);
            }
        }
    }
    let result = tools.toolbox.run(call, context).await;
    for location in &call.locations {
        if let Err(error) = protected.accept(location.path.clone().into()).await {
            tracing::warn!(%error, "a changed file was not noted");
        }
    }
    result
}

async fn run_watched(tools: &SessionTools, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected(), tools.toolbox.writable(&tools.workspace));
    let begin = async {
        if let Some(aside) = protected.left_over(&folders).await? {
            ask_about_changes(tools, aside, context, "A command that was cut off changed").await;
        }
        protected.begin(&folders).await
    };
    let watched = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled(),
        watched = begin => match watched {
            Ok(watched) => watched,
            Err(error) => return failed_watch(&error),
        },
    };
    // Everything that it started is dead when it returns.
    let result = tools.toolbox.run(call, context).await;
    let manner = if tools.is_auto() { OnChange::Tell } else { OnChange::SetAside };
    match watched.end(manner).await {
        Ok(None) => result,
        Ok(Some(aside)) if manner == OnChange::Tell => {
            with_note(tools, result, &format!("it changed {}", aside.names()))
        }
        Ok(Some(aside)) => {
            let note = ask_about_changes(tools, aside, context, "The command changed").await;
            with_note(tools, result, &note)
        }
        Err(error) => with_note(tools, result, &format!("what it changed could not be looked at: {error}")),
    }
}

/// Shows what changed, asks, and does what is said. With nobody there it is a no.
async fn ask_about_changes(tools: &SessionTools, aside: SetAsideChanges, context: &ToolContext, how: &str) -> String {
    let names = aside.names();
    if !aside.is_question() {
        return names;
    }
    let shown = ToolResult { end: ToolEnd::Completed, content: aside.diffs(), raw: None };
    if context.signals.send(ToolEvent::Shown(tools.toolbox.redact_and_limit(shown).content)).await.is_err() {
        tracing::debug!("nobody sees what a command changed");
    }
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_once", "Keep the change", ChoiceKind::AllowOnce),
        choice("reject_once", "Drop it", ChoiceKind::RejectOnce),
    ];
    let title = format!("{how} files that make other programs run something. Keep: {}", aside.line());
    let allowed = tokio::select! {
        biased;
        () = context.cancel.cancelled() => false,
        reply = tools.servers.ask(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => reply.allows(),
    };
    match allowed {
        false => format!("what it did to these files was undone, for they make other programs run something: {names}"),
        true => match aside.keep().await {
            Ok(problems) if problems.is_empty() => format!("a person allowed what it did to: {names}"),
            Ok(problems) => format!("a person allowed what it did to: {names}; but {}", problems.join("; ")),
            Err(error) => format!("what it did to {names} was allowed, and could not be put back in place: {error}"),
        },
    }
}

fn with_note(tools: &SessionTools, mut result: ToolResult, note: &str) -> ToolResult {
    result.content.push(ToolContent::Part { part: Part::text(format!("[{note}]")) });
    tools.toolbox.redact_and_limit(result)
}

fn cancelled() -> ToolResult {
    ToolResult::text(ToolEnd::Cancelled, "cancelled")
}

fn failed_watch(error: &std::io::Error) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, format!("the workspace could not be looked through before the command: {error}"))
}
