//! A command that changed files which make something run, and a person who may let it.

use gander_domain::{
    Choice, ChoiceKind, Part, QuestionKind, QuestionOrigin, ToolCall, ToolContent, ToolEnd, ToolResult,
};
use gander_tools::protected::{Aside, Manner};
use gander_tools::{Signal, ToolContext};

use super::hands::Workbench;

/// Runs a built-in tool. Nothing runs in a folder while somebody is asked about what a command changed there.
pub(super) async fn run(bench: &Workbench, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let here = bench.host.is_here() || !bench.host.offers().terminal;
    let work = async {
        match call.name.as_str() {
            "shell" if here && bench.toolbox.is_fenced() => run_watched(bench, call, context).await,
            "write" | "edit" => run_accepted(bench, call, context).await,
            _ => bench.toolbox.run(call, context).await,
        }
    };
    work.await
}

/// The person was asked about this very file, or need not be: no command is blamed for it.
async fn run_accepted(bench: &Workbench, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (bench.toolbox.protected(), bench.toolbox.writable(&bench.workspace));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled(),
        free = protected.undisputed(&folders) => {
            if let Err(error) = free {
                return broken(&error);
            }
        }
    }
    let result = bench.toolbox.run(call, context).await;
    for location in &call.locations {
        if let Err(error) = protected.accept(location.path.clone().into()).await {
            tracing::warn!(%error, "a changed file was not noted");
        }
    }
    result
}

async fn run_watched(bench: &Workbench, call: &ToolCall, context: &ToolContext) -> ToolResult {
    let (protected, folders) = (bench.toolbox.protected(), bench.toolbox.writable(&bench.workspace));
    let begin = async {
        if let Some(aside) = protected.left_over(&folders).await? {
            decide(bench, aside, context, "A command that was cut off changed").await;
        }
        protected.begin(&folders).await
    };
    let watched = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return cancelled(),
        watched = begin => match watched {
            Ok(watched) => watched,
            Err(error) => return broken(&error),
        },
    };
    // Everything that it started is dead when it returns.
    let result = bench.toolbox.run(call, context).await;
    let manner = if bench.is_auto() { Manner::Tell } else { Manner::SetAside };
    match watched.end(manner).await {
        Ok(None) => result,
        Ok(Some(aside)) if manner == Manner::Tell => told(bench, result, &format!("it changed {}", aside.names())),
        Ok(Some(aside)) => {
            let note = decide(bench, aside, context, "The command changed").await;
            told(bench, result, &note)
        }
        Err(error) => told(bench, result, &format!("what it changed could not be looked at: {error}")),
    }
}

/// Shows what changed, asks, and does what is said. With nobody there it is a no.
async fn decide(bench: &Workbench, aside: Aside, context: &ToolContext, how: &str) -> String {
    let names = aside.names();
    if !aside.is_question() {
        return names;
    }
    let shown = ToolResult { end: ToolEnd::Completed, content: aside.diffs(), raw: None };
    if context.signals.send(Signal::Shown(bench.toolbox.lent(shown).content)).await.is_err() {
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
        reply = bench.servers.ask(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => reply.allows(),
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

fn told(bench: &Workbench, mut result: ToolResult, note: &str) -> ToolResult {
    result.content.push(ToolContent::Part { part: Part::text(format!("[{note}]")) });
    bench.toolbox.lent(result)
}

fn cancelled() -> ToolResult {
    ToolResult::text(ToolEnd::Cancelled, "cancelled")
}

fn broken(error: &std::io::Error) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, format!("the workspace could not be looked through before the command: {error}"))
}
