//! What a shell line reads, and how it is run so that it can do nothing but read.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::script::{self, ShellScript};
use super::{WorkspaceFolders, programs};

/// What the commands of a line read, as far as they are known to only read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineReads {
    /// True if every command of the line only reads.
    pub whole: bool,
    /// What is named, seen from every directory in which it may be looked up.
    pub paths: Vec<NamedPath>,
    /// Folders that are searched with everything below them: secret files there must be out of reach.
    pub searched: Vec<PathBuf>,
    /// Those of them of which hidden folders are searched too.
    pub searched_hidden: Vec<PathBuf>,
    /// Those of them in which links are followed.
    pub followed: Vec<PathBuf>,
    /// Where git looks for a repository.
    pub repositories: Vec<RepositoryUse>,
    pub(super) edits: Vec<LineEdit>,
}

/// A path that a line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// Absolute, by its letters.
    pub path: PathBuf,
    /// True if the shell puts names of files in its folders.
    pub glob: bool,
}

/// A command of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryUse {
    /// Where it runs.
    pub from: PathBuf,
    /// True if it would compare files of its own accord where there is no repository.
    pub needed: bool,
    /// True if it shows content of files that the line does not name.
    pub shows_content: bool,
}

/// A piece of the line that runs in another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineEdit {
    pub(super) span: Range<usize>,
    pub(super) text: String,
}

/// What a line reads that is run in a directory; none if it is not plain.
pub fn find_reads(line: &str, cwd: &Path, folders: &WorkspaceFolders) -> Option<LineReads> {
    let script = ShellScript::parse(line);
    if script.flaw.is_some() {
        return None;
    }
    let mut reads = LineReads { whole: true, ..LineReads::default() };
    let mut bases = vec![cwd.to_owned()];
    for command in &script.commands {
        // What a command that does more than read names is no business of this list.
        let mut one = LineReads::default();
        match programs::check_only_reads(command, &bases, folders, &mut one) {
            Ok(()) => reads.merge_reads(one),
            Err(_) => reads.whole = false,
        }
        bases = script::directories_after_script(command, bases)?;
    }
    Some(reads)
}

impl LineReads {
    /// The line as it is run: git gets options by which it starts no program that a repository names, and shows
    /// commits where a number could also stand for the content of a secret file.
    pub fn rewrite_safely(&self, line: &str) -> String {
        let mut edits: Vec<&LineEdit> = self.edits.iter().collect();
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
        edits.into_iter().fold(line.to_owned(), |mut line, edit| {
            line.replace_range(edit.span.clone(), &edit.text);
            line
        })
    }

    /// True if more is read than what is named.
    pub(super) fn reads_unnamed_files(&self) -> bool {
        !self.searched.is_empty() || !self.repositories.is_empty()
    }

    pub(super) fn merge_reads(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.searched.extend(other.searched);
        self.searched_hidden.extend(other.searched_hidden);
        self.followed.extend(other.followed);
        self.repositories.extend(other.repositories);
        self.edits.extend(other.edits);
    }
}
