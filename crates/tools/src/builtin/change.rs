//! Changing one file: what was there, what is there now, and the difference to show.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use similar::{ChangeTag, TextDiff};
use tokio::sync::Mutex;

use crate::blocking::BlockingPool;
use crate::protected::{is_repository_text_part, text_objection};
use crate::redact::MASK;
use crate::{HostError, Located, PathError, ProtectedChanges, ToolContext, ToolError, Workspace};

/// A diff of longer texts shows only what changed and some lines around it.
const WHOLE: usize = 128 << 10;

/// Lines around a change.
const AROUND: usize = 3;

/// How long two texts are compared.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes of a file on the disk that a change is compared with.
const LARGEST_SAVED: u64 = 16 << 20;

/// The text of the file now, if there is one.
pub(crate) async fn text_before_change(
    located: &Located,
    context: &ToolContext,
    limit: u64,
) -> Result<Option<String>, ToolError> {
    let (workspace, place) = (context.workspace.clone(), located.clone());
    let looked = tokio::task::spawn_blocking(move || workspace.read_text(&place, limit)).await;
    let looked = looked.map_err(|error| ToolError::failed(format!("file work broke off: {error}")))?;
    match looked {
        // The editor's text is the newer one.
        Ok(_) if context.host.offers().read => Ok(Some(context.read_text(located.absolute_path(), limit).await?)),
        Ok(text) => Ok(Some(text)),
        Err(PathError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The text on the disk now, if there is one.
pub(crate) fn text_on_disk_before_change(located: &Located, workspace: &Workspace, limit: u64) -> Option<String> {
    workspace.read_text(located, limit).ok()
}

/// Why somebody must be asked about this new text.
pub(crate) fn change_objection(
    located: &Located,
    workspace: &Workspace,
    old: Option<&str>,
    new: &str,
) -> Option<String> {
    text_objection(workspace.root_of(located), located.relative_path(), old, new)
}

/// Held while a part of what could become a repository is looked at once more and written, so that of several such
/// changes each sees what the ones before it did. Shared by the tools of a server; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct WriteLock(Arc<Mutex<()>>);

/// Writes the new text, unless it needs somebody's yes by now.
async fn write_changed_file(
    located: &Located,
    (old, new): (Option<&str>, &str),
    context: &ToolContext,
    lock: &WriteLock,
) -> Result<(), ToolError> {
    let asked = context.protected_changes == ProtectedChanges::Allowed;
    let _lock = match !asked && is_repository_text_part(located.relative_path()) {
        true => Some(lock.0.lock().await),
        false => None,
    };
    if !asked && let Some(unforeseen) = recheck_change_objection(located, (old, new), context).await? {
        return Err(ToolError::failed(format!(
            "{unforeseen}. Nobody was asked, for the file was another when this was decided: make the call again"
        )));
    }
    context.write_text(located.absolute_path(), new).await.map_err(|error| match error {
        HostError::Failed(message) => ToolError::failed(message),
        HostError::Cancelled => ToolError::cancelled(),
    })
}

/// Why somebody must be asked after all. An editor may hold another text than the disk does: to leave as it was what
/// counts in either of them is nobody's new doing.
async fn recheck_change_objection(
    located: &Located,
    (old, new): (Option<&str>, &str),
    context: &ToolContext,
) -> Result<Option<String>, ToolError> {
    let (workspace, place) = (Arc::clone(&context.workspace), located.clone());
    let (old, new) = (old.map(str::to_owned), new.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let saved = || text_on_disk_before_change(&place, &workspace, LARGEST_SAVED);
        change_objection(&place, &workspace, old.as_deref(), &new)
            .filter(|_| change_objection(&place, &workspace, saved().as_deref(), &new).is_some())
    });
    looked.await.map_err(|error| ToolError::failed(format!("file work broke off: {error}")))
}

/// Writes the new text and shows the change.
pub(crate) async fn apply_change(
    located: &Located,
    old: Option<String>,
    new: String,
    context: &ToolContext,
    (blocking, lock): (&BlockingPool, &WriteLock),
) -> Result<ToolResult, ToolError> {
    if new.contains(MASK) && !old.as_deref().is_some_and(|old| old.contains(MASK)) {
        return Err(ToolError::failed(format!(
            "the new text holds {MASK}, which stands for a secret that is hidden from you and would be lost: \
             edit only the lines around it"
        )));
    }
    let path = located.absolute_path();
    write_changed_file(located, (old.as_deref(), &new), context, lock).await?;
    let name = context.workspace.display_name(located);
    let deadline = Instant::now() + DIFF_TIMEOUT;
    let compared = blocking.run_blocking(move || {
        let summary = change_summary(&name, old.as_deref(), &new, deadline);
        (summary, change_diff_excerpt(old, new))
    });
    let (summary, (old, new)) = compared.await?;
    let diff = ToolContent::Diff { path: path.to_string_lossy().into_owned(), old, new };
    let content = vec![ToolContent::Part { part: Part::text(summary) }, diff];
    Ok(ToolResult { end: ToolEnd::Completed, content, raw: None })
}

/// A change of a file as people see it.
pub(crate) fn change_diff_content(located: &Located, old: Option<String>, new: String) -> ToolContent {
    let (old, new) = change_diff_excerpt(old, new);
    ToolContent::Diff { path: located.absolute_path().to_string_lossy().into_owned(), old, new }
}

/// After the deadline what is not compared yet counts as changed: texts without a line in common take quadratic time.
fn change_summary(name: &str, old: Option<&str>, new: &str, deadline: Instant) -> String {
    let Some(old) = old else { return format!("created {name}: {} lines", new.lines().count()) };
    let (mut added, mut removed) = (0, 0);
    let (old, new) = trim_unchanged_lines(old, new);
    for change in TextDiff::configure().deadline(deadline).diff_lines(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    format!("changed {name}: +{added} -{removed} lines")
}

/// Both texts whole, or of long ones the part that differs.
fn change_diff_excerpt(old: Option<String>, new: String) -> (Option<String>, String) {
    match old {
        Some(old) if old.len().max(new.len()) > WHOLE => {
            let (before, after) = trim_unchanged_lines(&old, &new);
            let (before, after) = (before.to_owned(), after.to_owned());
            (Some(before), after)
        }
        old => (old, new),
    }
}

/// Both texts without the lines they begin and end with in common, but for a few.
fn trim_unchanged_lines<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let olds: Vec<&str> = old.split_inclusive('\n').collect();
    let news: Vec<&str> = new.split_inclusive('\n').collect();
    let head = olds.iter().zip(&news).take_while(|(a, b)| a == b).count();
    let most = olds.len().min(news.len()) - head;
    let tail = olds.iter().rev().zip(news.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let (head, tail) = (head.saturating_sub(AROUND), tail.saturating_sub(AROUND));
    let start: usize = olds[..head].iter().map(|line| line.len()).sum();
    let end: usize = olds[olds.len() - tail..].iter().map(|line| line.len()).sum();
    (&old[start..old.len() - end], &new[start..new.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other line is another one: the worst case of the comparison, which without a deadline takes minutes.
    #[test]
    fn a_comparison_ends_at_its_deadline() {
        let text = |word: &str| (0..200_000).map(|line| format!("{word}{}\n", line * 7 % 100_003)).collect::<String>();
        let (old, new) = (text("a"), text("b"));
        assert_eq!(change_summary("f", Some(&old), &new, Instant::now()), "changed f: +200000 -200000 lines");
        let later = Instant::now() + Duration::from_secs(3_600);
        assert_eq!(change_summary("f", Some("a\nb\nc\n"), "a\nx\nc\n", later), "changed f: +1 -1 lines");
        assert_eq!(change_summary("f", None, "a\n", later), "created f: 1 lines");
    }
}
