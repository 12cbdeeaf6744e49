//! A command or a server's program that changed files which make something run, and a person who may let it.

use gander_domain::{
    Choice, ChoiceKind, Part, QuestionKind, QuestionOrigin, ToolCall, ToolContent, ToolEnd, ToolResult,
};
use gander_tools::protected::{OnChange, SetAsideChanges};
use gander_tools::{ToolContext, ToolEffect, ToolEvent};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::session_tools::SessionTools;

/// A call under way: where it shows what it does, and what ends it.
#[derive(Clone, Copy)]
pub(super) struct RunningCall<'a> {
    pub(super) signals: &'a mpsc::Sender<ToolEvent>,
    pub(super) cancel: &'a CancellationToken,
}

/// Runs a built-in tool. Nothing runs in a folder while somebody is asked about what a command changed there.
pub(super) async fn run_watching_protected_files(
    tools: &SessionTools,
    call: &ToolCall,
    context: &ToolContext,
) -> ToolResult {
    let here = tools.host.is_here() || !tools.host.offers().terminal;
    let work = async {
        match tools.tool_effect(&call.name) {
            ToolEffect::Exec if here && tools.toolbox.is_sandboxed() => {
                let running = RunningCall { signals: &context.signals, cancel: &context.cancel };
                // Everything that it started is dead when it returns.
                run_watched(tools, running, "The command changed", tools.toolbox.run_tool(call, context)).await
            }
            ToolEffect::FileWrite => run_accepted(tools, call, context).await,
            ToolEffect::Read
            | ToolEffect::Internal
            | ToolEffect::StoreWrite
            | ToolEffect::Exec
            | ToolEffect::Network
            | ToolEffect::Unknown => tools.toolbox.run_tool(call, context).await,
        }
    };
    work.await
}

/// The person was asked about this very file, or need not be: no command is blamed for it.
async fn run_accepted(tools: &SessionTools, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected_files(), tools.toolbox.writable_paths(&tools.workspace));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled_result(),
        free = protected.wait_until_decided(&folders) => {
            if let Err(error) = free {
                return failed_watch(&error);
            }
        }
    }
    let result = tools.toolbox.run_tool(call, context).await;
    for location in &call.locations {
        if let Err(error) = protected.accept_change(location.path.clone().into()).await {
            tracing::warn!(%error, "a changed file was not noted");
        }
    }
    result
}

/// Runs a call to a server whose program is on this machine. Its program may write where the session works, as a
/// command may. It goes on running after the call: what it changes between two calls is not seen here.
pub(super) async fn run_program(
    tools: &SessionTools,
    running: RunningCall<'_>,
    work: impl Future<Output = ToolResult>,
) -> ToolResult {
    run_watched(tools, running, "The server's program changed", work).await
}

async fn run_watched(
    tools: &SessionTools,
    running: RunningCall<'_>,
    how: &str,
    work: impl Future<Output = ToolResult>,
) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected_files(), tools.toolbox.writable_paths(&tools.workspace));
    let begin = async {
        if let Some(aside) = protected.recover_interrupted(&folders).await? {
            ask_about_changes(tools, aside, running, "A command that was cut off changed").await;
        }
        protected.watch_command(&folders).await
    };
    let watched = tokio::select! {
        biased;
        () = running.cancel.cancelled() => return cancelled_result(),
        watched = begin => match watched {
            Ok(watched) => watched,
            Err(error) => return failed_watch(&error),
        },
    };
    let result = work.await;
    let manner = if tools.is_auto() { OnChange::Tell } else { OnChange::SetAside };
    match watched.finish_command(manner).await {
        Ok(None) => result,
        Ok(Some(aside)) if manner == OnChange::Tell => {
            with_note(tools, result, &format!("it changed {}", aside.path_names()))
        }
        Ok(Some(aside)) => {
            let note = ask_about_changes(tools, aside, running, how).await;
            with_note(tools, result, &note)
        }
        Err(error) => with_note(tools, result, &format!("what it changed could not be looked at: {error}")),
    }
}

/// Shows what changed, asks, and does what is said. With nobody there it is a no.
async fn ask_about_changes(
    tools: &SessionTools,
    aside: SetAsideChanges,
    running: RunningCall<'_>,
    how: &str,
) -> String {
    let names = aside.path_names();
    if !aside.has_changes() {
        return names;
    }
    let shown = ToolResult { end: ToolEnd::Completed, content: aside.change_diffs(), raw: None };
    if running.signals.send(ToolEvent::Shown(tools.toolbox.redact_and_limit(shown).content)).await.is_err() {
        tracing::debug!("nobody sees what a command changed");
    }
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_once", "Keep the change", ChoiceKind::AllowOnce),
        choice("reject_once", "Drop it", ChoiceKind::RejectOnce),
    ];
    let title = format!("{how} files that make other programs run something. Keep: {}", aside.one_line());
    let allowed = tokio::select! {
        biased;
        () = running.cancel.cancelled() => false,
        reply = tools.servers.ask_person(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => reply.is_allowed(),
    };
    match allowed {
        false => format!("what it did to these files was undone, for they make other programs run something: {names}"),
        true => match aside.apply_changes().await {
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

fn cancelled_result() -> ToolResult {
    ToolResult::text(ToolEnd::Cancelled, "cancelled")
}

fn failed_watch(error: &std::io::Error) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, format!("the workspace could not be looked through before the command: {error}"))
}
