//! Walks through a folder, handle by handle: links are named, never followed; what git ignores is left out.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType};

use crate::{Located, PathError, Workspace};

/// Folders deeper than this are not entered.
const DEEPEST: usize = 64;

/// Files of patterns longer than this are left aside.
const LONGEST_PATTERNS: u64 = 256 << 10;

/// Something found on the way.
pub(crate) struct WalkedEntry {
    pub(crate) located: Located,
    pub(crate) kind: WalkedKind,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkedKind {
    File,
    Folder,
    Link,
}

/// How to walk.
pub(crate) struct Walk<'a> {
    pub(crate) workspace: &'a Workspace,
    /// How many levels to go down.
    pub(crate) depth: usize,
    /// Hidden files too?
    pub(crate) hidden: bool,
}

impl Walk<'_> {
    /// Visits everything below a folder, in the order of names, until told to stop.
    pub(crate) fn visit(
        &self,
        start: &Located,
        visitor: &mut dyn FnMut(WalkedEntry) -> ControlFlow<()>,
    ) -> Result<(), PathError> {
        let mut ignores = self.gitignores_above(start);
        // Stopping early is no failure.
        self.walk_folder(start, 0, &mut ignores, visitor).map(|_| ())
    }

    fn walk_folder(
        &self,
        folder: &Located,
        depth: usize,
        ignores: &mut Vec<Gitignore>,
        visitor: &mut dyn FnMut(WalkedEntry) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, PathError> {
        let entries = self.read_folder_entries(folder)?;
        ignores.push(self.read_gitignore(folder));
        let mut flow = ControlFlow::Continue(());
        for (name, kind) in entries {
            let located = folder.child_path(&name);
            if self.is_left_out(&name, &located, kind, ignores) {
                continue;
            }
            flow = visitor(WalkedEntry { located: located.clone(), kind });
            if flow.is_continue() && kind == WalkedKind::Folder && depth + 1 < self.depth.min(DEEPEST) {
                // A folder that cannot be read, or is gone by now, does not end the walk.
                flow = self.walk_folder(&located, depth + 1, ignores, visitor).unwrap_or(flow);
            }
            if flow.is_break() {
                break;
            }
        }
        ignores.pop();
        Ok(flow)
    }

    fn read_folder_entries(&self, folder: &Located) -> Result<Vec<(String, WalkedKind)>, PathError> {
        let failed = |error| PathError::from_io(folder.absolute_path(), error);
        let handle = self.workspace.open_directory(folder)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let Some(kind) = walked_entry_kind(entry.file_type()).or_else(|| walked_entry_kind_by_stat(&handle, name))
            else {
                continue;
            };
            if name != "." && name != ".." {
                entries.push((name.to_owned(), kind));
            }
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(entries)
    }

    fn is_left_out(&self, name: &str, located: &Located, kind: WalkedKind, ignores: &[Gitignore]) -> bool {
        let folder = kind == WalkedKind::Folder;
        let verdict =
            ignores.iter().rev().map(|ignore| ignore.matched(located.absolute_path(), folder)).find(|m| !m.is_none());
        match verdict {
            _ if self.workspace.is_hidden(located) => true,
            _ if name == ".git" || (name.starts_with('.') && !self.hidden) => true,
            Some(Match::Ignore(_)) => true,
            Some(Match::Whitelist(_) | Match::None) | None => false,
        }
    }

    /// The patterns of the folders above, from the root down.
    fn gitignores_above(&self, start: &Located) -> Vec<Gitignore> {
        let mut folder = start.clone();
        let mut ignores = Vec::new();
        while let Some(parent) = folder.parent() {
            ignores.push(self.read_gitignore(&parent));
            folder = parent;
        }
        ignores.reverse();
        ignores
    }

    fn read_gitignore(&self, folder: &Located) -> Gitignore {
        let mut builder = GitignoreBuilder::new(folder.absolute_path());
        for name in [".gitignore", ".ignore"] {
            let text = self.workspace.read_text(&folder.child_path(name), LONGEST_PATTERNS).unwrap_or_default();
            for line in text.lines() {
                // A pattern that is none ignores nothing.
                drop(builder.add_line(None, line));
            }
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

fn walked_entry_kind(kind: FileType) -> Option<WalkedKind> {
    let known = [
        (FileType::RegularFile, WalkedKind::File),
        (FileType::Directory, WalkedKind::Folder),
        (FileType::Symlink, WalkedKind::Link),
    ];
    known.into_iter().find_map(|(theirs, ours)| (theirs == kind).then_some(ours))
}

/// For file systems that do not tell the kind with the name.
fn walked_entry_kind_by_stat(folder: &OwnedFd, name: &str) -> Option<WalkedKind> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    walked_entry_kind(FileType::from_raw_mode(stat.st_mode))
}

impl Located {
    fn parent(&self) -> Option<Self> {
        let relative: &Path = self.relative.parent()?;
        Some(Self {
            root: self.root,
            relative: relative.to_owned(),
            absolute: self.absolute_path().parent()?.to_owned(),
        })
    }
}
