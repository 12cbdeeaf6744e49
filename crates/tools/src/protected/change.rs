//! What differs between two looks at a folder, set aside and put back.

use std::io;
use std::path::{Path, PathBuf};

use gander_domain::ToolContent;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::file_state::{Content, FileState};
use super::open_folder::{ByteBudget, OpenFolder};
use super::relevant_part::RelevantPart;
use super::scan::{ScanResult, ScannedEntry};
use crate::permission::is_secret_path;

/// Bytes of a text that is shown as a difference.
const MAX_DIFF_BYTES: usize = 16 << 10;

/// Characters of one difference in a line for people.
const MAX_EXCERPT_CHARS: usize = 80;

/// A file system may note the time of a change a little early.
const CLOCK_SLACK_SECONDS: i64 = 1;

/// A path at which something else stands than before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Option<ScannedEntry>,
    pub(super) after: Option<ScannedEntry>,
}

/// What differs in what counts. A look that was cut short says nothing about what it did not reach.
pub(super) fn compare_scans(folder: &OpenFolder, before: &ScanResult, after: &ScanResult, since: i64) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, old) in &before.files {
        let now = after.files.get(path).cloned().or_else(|| {
            let state = folder.read_state(path, &mut ByteBudget(u64::MAX)).ok().flatten()?;
            Some(ScannedEntry { relevant: old.relevant, state })
        });
        let same = match &now {
            Some(now) => old.relevant.is_same(path, &old.state, &now.state),
            None => old.relevant.is_irrelevant(path, &old.state),
        };
        if !same {
            changes.push(Change { path: path.clone(), before: Some(old.clone()), after: now });
        }
    }
    for (path, new) in after.files.iter().filter(|(path, _)| !before.files.contains_key(*path)) {
        let older = || folder.change_time(path).is_ok_and(|at| at < since - CLOCK_SLACK_SECONDS);
        if !new.relevant.is_irrelevant(path, &new.state) && (before.complete || !older()) {
            changes.push(Change { path: path.clone(), before: None, after: Some(new.clone()) });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// Repositories that are no longer where they were, and where they are now.
pub(super) fn moved_repositories(before: &ScanResult, after: &ScanResult) -> Vec<(PathBuf, PathBuf)> {
    let gone = before.repositories.iter().filter(|(path, identity)| after.repositories.get(*path) != Some(identity));
    gone.filter_map(|(path, identity)| {
        let now = after.repositories.iter().find(|(now, known)| *now != path && *known == identity)?;
        Some((now.0.clone(), path.clone()))
    })
    .collect()
}

/// Makes everything as it was. Returns what could not be.
pub(super) fn undo_changes(folder: &OpenFolder, before: &ScanResult, changes: &[Change]) -> Vec<String> {
    let mut problems = Vec::new();
    let can_be = |change: &&Change| !change.before.as_ref().is_some_and(|old| is_large_change(&old.state));
    // Files in folders before the folders' own names.
    for change in changes.iter().rev().filter(can_be).filter(|change| change.after.is_some()) {
        let done = folder.remove(&change.path, nearest_known_folder(before, &change.path));
        problems.extend(done.err().map(|error| describe_change_problem(change, "could not be set aside", &error)));
    }
    for change in changes.iter().filter(can_be) {
        let Some(old) = &change.before else { continue };
        let done = folder.write_state(&change.path, &old.state);
        problems.extend(done.err().map(|error| describe_change_problem(change, "could not be restored", &error)));
    }
    let lost = changes.iter().filter(|change| !can_be(change));
    problems
        .extend(lost.map(|change| format!("{}: too large to be restored, it stays changed", change.path.display())));
    problems
}

/// Makes everything as it is wanted now. Returns what could not be.
pub(super) fn redo_changes(folder: &OpenFolder, changes: &[Change]) -> Vec<String> {
    // What goes makes room for what comes.
    let removed = changes
        .iter()
        .rev()
        .filter(|change| change.after.is_none())
        .map(|change| (change, folder.remove(&change.path, Path::new(""))));
    let placed = changes.iter().filter_map(|change| {
        let new = change.after.as_ref()?;
        Some((change, folder.write_state(&change.path, &new.state)))
    });
    let failed = removed.chain(placed).filter_map(|(change, done)| Some((change, done.err()?)));
    failed.map(|(change, error)| describe_change_problem(change, "could not be put in place", &error)).collect()
}

impl Change {
    /// In one line, with the first words that are new.
    pub(super) fn one_line(&self) -> String {
        let what = match (&self.before, &self.after) {
            (None, _) => "new",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) => "changed",
        };
        let words = self.added_text();
        let cut = words.char_indices().nth(MAX_EXCERPT_CHARS).map_or(words.len(), |(at, _)| at);
        let words = if words.is_empty() { String::new() } else { format!(": {}", &words[..cut]) };
        format!("{} ({what}{words})", self.path.display())
    }

    /// The difference, where it is text and holds no secrets by its name.
    pub(super) fn diff_content(&self, root: &Path) -> Option<ToolContent> {
        let text =
            |entry: &Option<ScannedEntry>| entry.as_ref().and_then(|entry| entry.state.text().map(str::to_owned));
        let (old, new) = (text(&self.before), text(&self.after).unwrap_or_default());
        let short = new.len().max(old.as_ref().map_or(0, String::len)) <= MAX_DIFF_BYTES;
        let path = root.join(&self.path).to_string_lossy().into_owned();
        (short && !is_secret_path(&self.path)).then_some(ToolContent::Diff { path, old, new })
    }

    /// What is there now and was not, as far as it counts.
    fn added_text(&self) -> String {
        let Some(new) = &self.after else { return String::new() };
        let part = |entry: &ScannedEntry| match &entry.state {
            FileState::Link { target } => Some(format!("-> {target}")),
            FileState::File { .. } => entry.state.text().map(|text| entry.relevant.extract_from_text(&self.path, text)),
            FileState::Other { .. } => None,
        };
        let Some(now) = part(new) else { return "no text".to_owned() };
        let old = self.before.as_ref().and_then(part).unwrap_or_default();
        if old == now {
            return "can be executed, or no longer".to_owned();
        }
        let (old, now) = (clip_for_change_diff(&old), clip_for_change_diff(&now));
        let diff = TextDiff::from_lines(old, now);
        let added = diff.iter_all_changes().filter(|change| change.tag() == ChangeTag::Insert);
        added.map(|change| change.value().trim().to_owned()).collect::<Vec<_>>().join(" ")
    }
}

fn clip_for_change_diff(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_DIFF_BYTES)]
}

fn is_large_change(state: &FileState) -> bool {
    matches!(state, FileState::File { content: Content::Large { .. }, .. })
}

/// The nearest folder above that was there before and stays though it be empty.
fn nearest_known_folder<'a>(before: &ScanResult, path: &'a Path) -> &'a Path {
    let known =
        |above: &&Path| before.whole.iter().any(|whole| whole == above) || before.repositories.contains_key(*above);
    path.ancestors().skip(1).find(known).unwrap_or(Path::new(""))
}

fn describe_change_problem(change: &Change, what: &str, error: &io::Error) -> String {
    format!("{}: {what}: {error}", change.path.display())
}

/// What counts of a file at this path, by its name alone.
pub(super) fn relevant_part_of_change(path: &Path) -> RelevantPart {
    use crate::permission::{PathClass, classify_path_name};
    let name = |path: Option<&Path>| path.and_then(Path::file_name).unwrap_or_default().to_owned();
    let (parent, name) = (name(path.parent()), name(Some(path)));
    match classify_path_name(&parent, &name) {
        PathClass::Scripted => RelevantPart::Scripts,
        PathClass::Plain if parent == ".git" && name == "config" => RelevantPart::GitSettings,
        PathClass::Plain
        | PathClass::Git
        | PathClass::Folder
        | PathClass::Partly(_)
        | PathClass::File
        | PathClass::Generated => RelevantPart::Whole,
    }
}
