//! Changing one file: what was there, what is there now, and the difference to show.

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use similar::{ChangeTag, TextDiff};

use super::redact::MASK;
use super::{HostError, Located, PathError, ToolContext, ToolError};

/// A diff of longer texts shows only what changed and some lines around it.
const WHOLE: usize = 128 << 10;

/// Lines around a change.
const AROUND: usize = 3;

/// The text of the file now, if there is one.
pub(super) async fn current(located: &Located, context: &ToolContext, limit: u64) -> Result<Option<String>, ToolError> {
    let (workspace, place) = (context.workspace.clone(), located.clone());
    let looked = tokio::task::spawn_blocking(move || workspace.read_text(&place, limit)).await;
    let looked = looked.map_err(|error| ToolError::failed(format!("file work broke off: {error}")))?;
    match looked {
        // The editor's text is the newer one.
        Ok(_) if context.host.offers().read => Ok(Some(context.read_text(located.absolute(), limit).await?)),
        Ok(text) => Ok(Some(text)),
        Err(PathError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes the new text and shows the change.
pub(super) async fn apply(
    located: &Located,
    old: Option<String>,
    new: String,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    if new.contains(MASK) && !old.as_deref().is_some_and(|old| old.contains(MASK)) {
        return Err(ToolError::failed(format!(
            "the new text holds {MASK}, which stands for a secret that is hidden from you and would be lost: \
             edit only the lines around it"
        )));
    }
    let path = located.absolute();
    context.write_text(path, &new).await.map_err(|error| match error {
        HostError::Failed(message) => ToolError::failed(message),
        HostError::Cancelled => ToolError::cancelled(),
    })?;
    let summary = summary(&context.workspace.name(located), old.as_deref(), &new);
    let (old, new) = excerpt(old, new);
    let diff = ToolContent::Diff { path: path.to_string_lossy().into_owned(), old, new };
    let content = vec![ToolContent::Part { part: Part::text(summary) }, diff];
    Ok(ToolResult { end: ToolEnd::Completed, content, raw: None })
}

fn summary(name: &str, old: Option<&str>, new: &str) -> String {
    let Some(old) = old else { return format!("made {name}: {} lines", new.lines().count()) };
    let (mut added, mut removed) = (0, 0);
    let (old, new) = trimmed(old, new);
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    format!("changed {name}: +{added} -{removed} lines")
}

/// Both texts whole, or of long ones the part that differs.
fn excerpt(old: Option<String>, new: String) -> (Option<String>, String) {
    match old {
        Some(old) if old.len().max(new.len()) > WHOLE => {
            let (before, after) = trimmed(&old, &new);
            let (before, after) = (before.to_owned(), after.to_owned());
            (Some(before), after)
        }
        old => (old, new),
    }
}

/// Both texts without the lines they begin and end with in common, but for a few.
fn trimmed<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
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
