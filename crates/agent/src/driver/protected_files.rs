//! A command or a server's program that changed files which make something run, and a person who may let it.

use std::sync::atomic::Ordering;

use gander_domain::{
    Choice, ChoiceKind, Part, QuestionKind, QuestionOrigin, Reply, ToolCall, ToolContent, ToolEnd, ToolResult,
};
use gander_tools::protected::{Afterwards, OnChange, SetAsideChanges};
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
    let running = RunningCall { signals: &context.signals, cancel: &context.cancel };
    let effect = tools.tool_effect(&call.name);
    if matches!(effect, ToolEffect::Exec | ToolEffect::FileWrite)
        && let Some(refused) = check_protected_changes_between_calls(tools, running).await
    {
        return refused;
    }
    let work = async {
        match effect {
            ToolEffect::Exec if here && tools.toolbox.is_sandboxed() => {
                // Everything that it started is dead when it returns.
                run_watched_by_protected_files(
                    tools,
                    running,
                    "The command changed",
                    tools.toolbox.run_tool(call, context),
                )
                .await
            }
            ToolEffect::FileWrite => run_accepted_protected_call(tools, call, context).await,
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
async fn run_accepted_protected_call(tools: &SessionTools, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected_files(), tools.toolbox.writable_paths(&tools.workspace));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled_protected_result(),
        free = protected.wait_until_decided(&folders) => {
            if let Err(error) = free {
                return failed_protected_watch(&error);
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
/// command may. It goes on running after the call: what it changes between two calls is seen before the next one.
pub(super) async fn run_program_among_protected_files(
    tools: &SessionTools,
    running: RunningCall<'_>,
    work: impl Future<Output = ToolResult>,
) -> ToolResult {
    if let Some(refused) = check_protected_changes_between_calls(tools, running).await {
        return refused;
    }
    run_watched_by_protected_files(tools, running, "The server's program changed", work).await
}

/// What programs of servers did since the last call. Within a turn nobody else is expected to change such files: a change
/// is undone until somebody agrees. Before a turn's first call, or after it was parked, it may be the person's own: it
/// stays until somebody says no. Gives the result of a call that must not run.
async fn check_protected_changes_between_calls(tools: &SessionTools, running: RunningCall<'_>) -> Option<ToolResult> {
    let first = !tools.has_compared.swap(true, Ordering::Relaxed);
    let (protected, folders) = (tools.toolbox.protected_files(), tools.toolbox.writable_paths(&tools.workspace));
    if !tools.servers.has_programs() && !protected.has_old_note(&folders).await {
        return None;
    }
    let on_change = match (tools.is_auto(), first) {
        (true, _) => OnChange::Tell,
        (false, true) => OnChange::Ask,
        (false, false) => OnChange::SetAside,
    };
    let compared = tokio::select! {
        biased;
        () = running.cancel.cancelled() => return Some(cancelled_protected_result()),
        compared = protected.changes_since_last(&folders, on_change) => compared,
    };
    match (compared, on_change) {
        (Ok(None), _) => None,
        (Ok(Some(changes)), OnChange::Tell) => {
            tracing::warn!(changes = %changes.one_line(), "protected files changed between two calls");
            None
        }
        (Ok(Some(aside)), OnChange::SetAside) => {
            ask_about_protected_changes(tools, aside, running, "A server's program changed").await;
            None
        }
        (Ok(Some(changes)), OnChange::Ask) => ask_whose_protected_changes(tools, changes, running).await,
        (Err(error), _) => Some(failed_protected_watch(&error)),
    }
}

/// Asks about changes that may be the person's own. Without an answer they stay, and nothing runs.
async fn ask_whose_protected_changes(
    tools: &SessionTools,
    changes: SetAsideChanges,
    running: RunningCall<'_>,
) -> Option<ToolResult> {
    if !changes.has_changes() {
        return None;
    }
    let how = "Since the last call somebody, or a server's program, changed";
    let reply = ask_to_keep_protected_changes(tools, &changes, running, how).await;
    let done = match reply {
        Some(reply) if reply.is_allowed() => changes.accept().await,
        Some(Reply::Chosen { .. } | Reply::Filled { .. } | Reply::Rejected { .. } | Reply::Declined) => {
            changes.undo().await.map(|problems| {
                if !problems.is_empty() {
                    tracing::warn!(problems = %problems.join("; "), "changes of protected files stay");
                }
            })
        }
        Some(Reply::Cancelled | Reply::Interrupted | Reply::Superseded) | None => {
            let text = format!(
                "not run: these files make other programs run something, and nobody said whether their change since the \
                 last call is wanted: {}",
                changes.path_names()
            );
            return Some(ToolResult::text(ToolEnd::Rejected, text));
        }
    };
    done.err().map(|error| failed_protected_watch(&error))
}

async fn run_watched_by_protected_files(
    tools: &SessionTools,
    running: RunningCall<'_>,
    how: &str,
    work: impl Future<Output = ToolResult>,
) -> ToolResult {
    let (protected, folders) = (tools.toolbox.protected_files(), tools.toolbox.writable_paths(&tools.workspace));
    let begin = async {
        if let Some(aside) = protected.recover_interrupted(&folders).await? {
            ask_about_protected_changes(tools, aside, running, "A command that was cut off changed").await;
        }
        let afterwards = if tools.servers.has_programs() { Afterwards::Programs } else { Afterwards::Nothing };
        protected.watch_command(&folders).await.map(|watched| watched.followed_by(afterwards))
    };
    let watched = tokio::select! {
        biased;
        () = running.cancel.cancelled() => return cancelled_protected_result(),
        watched = begin => match watched {
            Ok(watched) => watched,
            Err(error) => return failed_protected_watch(&error),
        },
    };
    let result = work.await;
    let manner = if tools.is_auto() { OnChange::Tell } else { OnChange::SetAside };
    match watched.finish_command(manner).await {
        Ok(None) => result,
        Ok(Some(aside)) if manner == OnChange::Tell => {
            with_protected_files_note(tools, result, &format!("it changed {}", aside.path_names()))
        }
        Ok(Some(aside)) => {
            let note = ask_about_protected_changes(tools, aside, running, how).await;
            with_protected_files_note(tools, result, &note)
        }
        Err(error) => {
            with_protected_files_note(tools, result, &format!("what it changed could not be looked at: {error}"))
        }
    }
}

/// Shows what changed, asks, and does what is said. With nobody there it is a no.
async fn ask_about_protected_changes(
    tools: &SessionTools,
    aside: SetAsideChanges,
    running: RunningCall<'_>,
    how: &str,
) -> String {
    let names = aside.path_names();
    if !aside.has_changes() {
        return names;
    }
    let allowed =
        ask_to_keep_protected_changes(tools, &aside, running, how).await.is_some_and(|reply| reply.is_allowed());
    match allowed {
        false => format!("what it did to these files was undone, for they make other programs run something: {names}"),
        true => match aside.apply_changes().await {
            Ok(problems) if problems.is_empty() => format!("a person allowed what it did to: {names}"),
            Ok(problems) => format!("a person allowed what it did to: {names}; but {}", problems.join("; ")),
            Err(error) => format!("what it did to {names} was allowed, and could not be put back in place: {error}"),
        },
    }
}

/// Shows what changed, and asks whether it is wanted; nothing if the call ends before there is an answer.
async fn ask_to_keep_protected_changes(
    tools: &SessionTools,
    changes: &SetAsideChanges,
    running: RunningCall<'_>,
    how: &str,
) -> Option<Reply> {
    let shown = ToolResult { end: ToolEnd::Completed, content: changes.change_diffs(), raw: None };
    if running.signals.send(ToolEvent::Shown(tools.toolbox.redact_and_limit(shown).content)).await.is_err() {
        tracing::debug!("nobody sees what a command changed");
    }
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("allow_once", "Keep the change", ChoiceKind::AllowOnce),
        choice("reject_once", "Drop it", ChoiceKind::RejectOnce),
    ];
    let title = format!("{how} files that make other programs run something. Keep: {}", changes.one_line());
    tokio::select! {
        biased;
        () = running.cancel.cancelled() => None,
        reply = tools.servers.ask_person(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => Some(reply),
    }
}

fn with_protected_files_note(tools: &SessionTools, mut result: ToolResult, note: &str) -> ToolResult {
    result.content.push(ToolContent::Part { part: Part::text(format!("[{note}]")) });
    tools.toolbox.redact_and_limit(result)
}

fn cancelled_protected_result() -> ToolResult {
    ToolResult::text(ToolEnd::Cancelled, "cancelled")
}

fn failed_protected_watch(error: &std::io::Error) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, format!("the workspace could not be looked through before the command: {error}"))
}
