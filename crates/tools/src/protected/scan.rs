//! Finds what makes programs of the host run something: by names, below one folder, and not without end.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::folder::{Folder, Identity, Room};
use super::part::Counts;
use super::state::State;
use crate::permission::{Sort, lowered, sort};

/// Names that are looked at in one folder's tree.
const NAMES: usize = 200_000;

/// Folders that are looked into.
const FOLDERS: usize = 20_000;

/// Files that are kept.
const FILES: usize = 5_000;

/// Bytes of all of them that are kept.
const BYTES: u64 = 32 << 20;

/// What was found below a folder. Paths are relative to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Found {
    /// Files and links that count.
    pub(super) files: BTreeMap<PathBuf, Entry>,
    /// Repositories of git, and which folders they are.
    pub(super) repositories: BTreeMap<PathBuf, Identity>,
    /// What can be made read-only as a whole, nothing of which lies in another.
    pub(super) whole: Vec<PathBuf>,
    /// False if there was too much to look at.
    pub(super) complete: bool,
}

/// A file or link that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) counts: Counts,
    pub(super) state: State,
}

/// What is known of a folder that is still to be looked into.
#[derive(Clone, Copy)]
enum Region {
    /// Names decide.
    Plain,
    /// Everything counts.
    All,
    /// These names count.
    Only(&'static [&'static str]),
    /// A repository of git.
    Git,
    /// Its repositories of submodules, which may lie deep.
    Modules,
    /// Its further work trees.
    Worktrees,
    /// One of them.
    Worktree,
}

impl Region {
    /// Somebody may work in a folder that counts itself.
    fn of_root(name: &OsStr) -> Self {
        match sort(OsStr::new(""), name) {
            Sort::Folder => Self::All,
            Sort::Partly(names) => Self::Only(names),
            Sort::Git | Sort::File | Sort::Scripted | Sort::Generated | Sort::Plain => Self::Plain,
        }
    }

    /// Files that count and folders to look into, by name, where a repository is concerned.
    fn git(self, name: &str) -> Option<(Counts, Self)> {
        match (self, name) {
            (Self::Git, "config" | "config.worktree") => Some((Counts::GitSettings, Self::All)),
            (Self::Git, "commondir" | "hooks") => Some((Counts::Whole, Self::All)),
            (Self::Git, "info") => Some((Counts::Whole, Self::Only(&["attributes"]))),
            (Self::Git, "objects") => Some((Counts::Whole, Self::Only(&["info"]))),
            (Self::Git, "modules") => Some((Counts::Whole, Self::Modules)),
            (Self::Git, "worktrees") => Some((Counts::Whole, Self::Worktrees)),
            (Self::Git, "rebase-merge") => Some((Counts::RebaseCommands, Self::Only(&["git-rebase-todo"]))),
            (Self::Worktree, "config.worktree") => Some((Counts::GitSettings, Self::All)),
            (Self::Worktree, "commondir" | "gitdir") => Some((Counts::Whole, Self::All)),
            _ => None,
        }
    }
}

/// Looks through the folder. With `Reading::Names` nothing is kept of the files.
pub(super) fn scan(folder: &Folder, reading: Reading) -> io::Result<Found> {
    let mut scan = Scan {
        folder,
        reading,
        found: Found { complete: true, ..Found::default() },
        queue: VecDeque::from([(PathBuf::new(), Region::of_root(folder.name()))]),
        room: Room(BYTES),
        names: 0,
    };
    let mut folders = 0;
    // Breadth first: what is cut off lies deep.
    while let Some((path, region)) = scan.queue.pop_front() {
        folders += 1;
        if folders > FOLDERS || scan.names > NAMES || scan.found.files.len() > FILES {
            scan.found.complete = false;
            break;
        }
        match folder.list(&path) {
            Ok(entries) => scan.look(&path, region, &entries)?,
            // It is the root that must be there; anything else may go while we look, or be closed to us.
            Err(error) if path.as_os_str().is_empty() => return Err(error),
            Err(error) => tracing::trace!(%error, path = %path.display(), "a folder was not looked into"),
        }
    }
    Ok(scan.found)
}

/// How much is wanted of files that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Names,
    Contents,
}

struct Scan<'a> {
    folder: &'a Folder,
    reading: Reading,
    found: Found,
    queue: VecDeque<(PathBuf, Region)>,
    room: Room,
    names: usize,
}

impl Scan<'_> {
    fn look(&mut self, path: &Path, region: Region, entries: &[(OsString, FileType)]) -> io::Result<()> {
        self.names += entries.len();
        let bare = matches!(region, Region::Plain | Region::Modules) && is_repository(entries);
        let region = if bare { Region::Git } else { region };
        if matches!(region, Region::Git) {
            self.found.repositories.insert(path.to_owned(), self.folder.identity(path)?);
        }
        for (name, kind) in entries {
            let (inner, folder) = (path.join(name), *kind == FileType::Directory);
            match region {
                Region::Plain => self.plain(path, name, inner, folder)?,
                Region::All if folder => self.queue.push_back((inner, Region::All)),
                // Samples are never run.
                Region::All if Path::new(name).extension() == Some(OsStr::new("sample")) => {}
                Region::All => self.keep(inner, Counts::Whole)?,
                Region::Only(names) => self.only(path, name, names, inner, folder)?,
                Region::Modules if folder => self.queue.push_back((inner, Region::Modules)),
                Region::Worktrees if folder => self.queue.push_back((inner, Region::Worktree)),
                Region::Modules | Region::Worktrees => {}
                Region::Git | Region::Worktree => self.git(region, name, inner, folder)?,
            }
        }
        Ok(())
    }

    fn plain(&mut self, path: &Path, name: &OsStr, inner: PathBuf, folder: bool) -> io::Result<()> {
        let sort = sort(path.file_name().unwrap_or(self.folder.name()), name);
        match (sort, folder) {
            (Sort::Git, true) => self.queue.push_back((inner, Region::Git)),
            (Sort::Folder, true) => {
                self.found.whole.push(inner.clone());
                self.queue.push_back((inner, Region::All));
            }
            (Sort::Partly(names), true) => self.queue.push_back((inner, Region::Only(names))),
            (Sort::Generated, _) | (Sort::Plain, false) => {}
            (Sort::Plain | Sort::File | Sort::Scripted, true) => self.queue.push_back((inner, Region::Plain)),
            (Sort::Scripted, false) => self.keep(inner, Counts::Scripts)?,
            (Sort::Git | Sort::Folder | Sort::Partly(_) | Sort::File, false) => {
                self.found.whole.push(inner.clone());
                self.keep(inner, Counts::Whole)?;
            }
        }
        Ok(())
    }

    fn only(&mut self, path: &Path, name: &OsStr, names: &[&str], inner: PathBuf, folder: bool) -> io::Result<()> {
        if !names.contains(&lowered(name).as_str()) {
            return Ok(());
        }
        let parent = path.file_name().unwrap_or(OsStr::new(""));
        match folder {
            true if parent == "objects" => {
                self.queue.push_back((inner, Region::Only(&["alternates", "http-alternates"])));
            }
            true => {
                self.found.whole.push(inner.clone());
                self.queue.push_back((inner, Region::All));
            }
            false if parent == "rebase-merge" => self.keep(inner, Counts::RebaseCommands)?,
            false => {
                self.found.whole.push(inner.clone());
                self.keep(inner, Counts::Whole)?;
            }
        }
        Ok(())
    }

    fn git(&mut self, region: Region, name: &OsStr, inner: PathBuf, folder: bool) -> io::Result<()> {
        let Some((counts, within)) = region.git(&lowered(name)) else { return Ok(()) };
        match folder {
            true => {
                if matches!(within, Region::All) {
                    self.found.whole.push(inner.clone());
                }
                self.queue.push_back((inner, within));
            }
            false => {
                self.found.whole.push(inner.clone());
                self.keep(inner, counts)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, path: PathBuf, counts: Counts) -> io::Result<()> {
        if self.reading == Reading::Contents
            && let Some(state) = self.folder.state(&path, &mut self.room)?
        {
            self.found.files.insert(path, Entry { counts, state });
        }
        Ok(())
    }
}

/// What git itself looks for, so a repository without a folder of its own is found too.
pub(super) const REPOSITORY_PARTS: [&str; 3] = ["HEAD", "objects", "refs"];

fn is_repository(entries: &[(OsString, FileType)]) -> bool {
    REPOSITORY_PARTS.iter().all(|wanted| entries.iter().any(|(name, _)| name == wanted))
}

/// True if something of this name right below a repository, or in a folder of that name, can make git run something.
pub(super) fn counts_in_repository(name: &str) -> bool {
    Region::Git.git(name).is_some()
}
