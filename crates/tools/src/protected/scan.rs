//! Finds what makes programs of the host run something: by names, below one folder, and not without end.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::file_state::FileState;
use super::open_folder::{ByteBudget, Identity, OpenFolder};
use super::relevant_part::RelevantPart;
use crate::permission::{PathClass, classify_path_name, normalize_path_name};

/// Names that are looked at in one folder's tree.
const MAX_NAMES: usize = 200_000;

/// Folders that are looked into.
const MAX_FOLDERS: usize = 20_000;

/// Files that are kept.
const MAX_FILES: usize = 5_000;

/// Bytes of all of them that are kept.
const MAX_BYTES: u64 = 32 << 20;

/// What was found below a folder. Paths are relative to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ScanResult {
    /// Files and links that count.
    pub(super) files: BTreeMap<PathBuf, ScannedEntry>,
    /// Repositories of git, and which folders they are.
    pub(super) repositories: BTreeMap<PathBuf, Identity>,
    /// What can be made read-only as a whole, nothing of which lies in another.
    pub(super) whole: Vec<PathBuf>,
    /// False if there was too much to look at.
    pub(super) complete: bool,
}

/// A file or link that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScannedEntry {
    #[serde(rename = "counts")]
    pub(super) relevant: RelevantPart,
    pub(super) state: FileState,
}

/// What is known of a folder that is still to be looked into.
#[derive(Clone, Copy)]
enum ScanRegion {
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

impl ScanRegion {
    /// Somebody may work in a folder that counts itself.
    fn for_root(name: &OsStr) -> Self {
        match classify_path_name(OsStr::new(""), name) {
            PathClass::Folder => Self::All,
            PathClass::Partly(names) => Self::Only(names),
            PathClass::Git | PathClass::File | PathClass::Scripted | PathClass::Generated | PathClass::Plain => {
                Self::Plain
            }
        }
    }

    /// Files that count and folders to look into, by name, where a repository is concerned.
    fn repository_entry(self, name: &str) -> Option<(RelevantPart, Self)> {
        match (self, name) {
            (Self::Git, "config" | "config.worktree") => Some((RelevantPart::GitSettings, Self::All)),
            (Self::Git, "commondir" | "hooks") => Some((RelevantPart::Whole, Self::All)),
            (Self::Git, "info") => Some((RelevantPart::Whole, Self::Only(&["attributes"]))),
            (Self::Git, "objects") => Some((RelevantPart::Whole, Self::Only(&["info"]))),
            (Self::Git, "modules") => Some((RelevantPart::Whole, Self::Modules)),
            (Self::Git, "worktrees") => Some((RelevantPart::Whole, Self::Worktrees)),
            (Self::Git, "rebase-merge") => Some((RelevantPart::RebaseCommands, Self::Only(&["git-rebase-todo"]))),
            (Self::Worktree, "config.worktree") => Some((RelevantPart::GitSettings, Self::All)),
            (Self::Worktree, "commondir" | "gitdir") => Some((RelevantPart::Whole, Self::All)),
            _ => None,
        }
    }
}

/// Looks through the folder. With `ScanDepth::Names` nothing is kept of the files.
pub(super) fn scan_protected_paths(folder: &OpenFolder, depth: ScanDepth) -> io::Result<ScanResult> {
    let mut scan = Scan {
        folder,
        depth,
        found: ScanResult { complete: true, ..ScanResult::default() },
        queue: VecDeque::from([(PathBuf::new(), ScanRegion::for_root(folder.folder_name()))]),
        budget: ByteBudget(MAX_BYTES),
        names: 0,
    };
    let mut folders = 0;
    // Breadth first: what is cut off lies deep.
    while let Some((path, region)) = scan.queue.pop_front() {
        folders += 1;
        if folders > MAX_FOLDERS || scan.names > MAX_NAMES || scan.found.files.len() > MAX_FILES {
            scan.found.complete = false;
            break;
        }
        match folder.list_entries(&path) {
            Ok(entries) => scan.scan_entries(&path, region, &entries)?,
            // It is the root that must be there; anything else may go while we look, or be closed to us.
            Err(error) if path.as_os_str().is_empty() => return Err(error),
            Err(error) => tracing::trace!(%error, path = %path.display(), "a folder was not looked into"),
        }
    }
    Ok(scan.found)
}

/// How much is wanted of files that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanDepth {
    Names,
    Contents,
}

struct Scan<'a> {
    folder: &'a OpenFolder,
    depth: ScanDepth,
    found: ScanResult,
    queue: VecDeque<(PathBuf, ScanRegion)>,
    budget: ByteBudget,
    names: usize,
}

impl Scan<'_> {
    fn scan_entries(&mut self, path: &Path, region: ScanRegion, entries: &[(OsString, FileType)]) -> io::Result<()> {
        self.names += entries.len();
        let bare = matches!(region, ScanRegion::Plain | ScanRegion::Modules) && is_scanned_repository(entries);
        let region = if bare { ScanRegion::Git } else { region };
        if matches!(region, ScanRegion::Git) {
            self.found.repositories.insert(path.to_owned(), self.folder.file_identity(path)?);
        }
        for (name, kind) in entries {
            let (inner, folder) = (path.join(name), *kind == FileType::Directory);
            match region {
                ScanRegion::Plain => self.scan_by_name(path, name, inner, folder)?,
                ScanRegion::All if folder => self.queue.push_back((inner, ScanRegion::All)),
                // Samples are never run.
                ScanRegion::All if Path::new(name).extension() == Some(OsStr::new("sample")) => {}
                ScanRegion::All => self.record_file(inner, RelevantPart::Whole)?,
                ScanRegion::Only(names) => self.scan_listed_name(path, name, names, inner, folder)?,
                ScanRegion::Modules if folder => self.queue.push_back((inner, ScanRegion::Modules)),
                ScanRegion::Worktrees if folder => self.queue.push_back((inner, ScanRegion::Worktree)),
                ScanRegion::Modules | ScanRegion::Worktrees => {}
                ScanRegion::Git | ScanRegion::Worktree => self.scan_repository_entry(region, name, inner, folder)?,
            }
        }
        Ok(())
    }

    fn scan_by_name(&mut self, path: &Path, name: &OsStr, inner: PathBuf, folder: bool) -> io::Result<()> {
        let class = classify_path_name(path.file_name().unwrap_or(self.folder.folder_name()), name);
        match (class, folder) {
            (PathClass::Git, true) => self.queue.push_back((inner, ScanRegion::Git)),
            (PathClass::Folder, true) => {
                self.found.whole.push(inner.clone());
                self.queue.push_back((inner, ScanRegion::All));
            }
            (PathClass::Partly(names), true) => self.queue.push_back((inner, ScanRegion::Only(names))),
            (PathClass::Generated, _) | (PathClass::Plain, false) => {}
            (PathClass::Plain | PathClass::File | PathClass::Scripted, true) => {
                self.queue.push_back((inner, ScanRegion::Plain))
            }
            (PathClass::Scripted, false) => self.record_file(inner, RelevantPart::Scripts)?,
            (PathClass::Git | PathClass::Folder | PathClass::Partly(_) | PathClass::File, false) => {
                self.found.whole.push(inner.clone());
                self.record_file(inner, RelevantPart::Whole)?;
            }
        }
        Ok(())
    }

    fn scan_listed_name(
        &mut self,
        path: &Path,
        name: &OsStr,
        names: &[&str],
        inner: PathBuf,
        folder: bool,
    ) -> io::Result<()> {
        if !names.contains(&normalize_path_name(name).as_str()) {
            return Ok(());
        }
        let parent = path.file_name().unwrap_or(OsStr::new(""));
        match folder {
            true if parent == "objects" => {
                self.queue.push_back((inner, ScanRegion::Only(&["alternates", "http-alternates"])));
            }
            true => {
                self.found.whole.push(inner.clone());
                self.queue.push_back((inner, ScanRegion::All));
            }
            false if parent == "rebase-merge" => self.record_file(inner, RelevantPart::RebaseCommands)?,
            false => {
                self.found.whole.push(inner.clone());
                self.record_file(inner, RelevantPart::Whole)?;
            }
        }
        Ok(())
    }

    fn scan_repository_entry(
        &mut self,
        region: ScanRegion,
        name: &OsStr,
        inner: PathBuf,
        folder: bool,
    ) -> io::Result<()> {
        let Some((relevant, within)) = region.repository_entry(&normalize_path_name(name)) else { return Ok(()) };
        match folder {
            true => {
                if matches!(within, ScanRegion::All) {
                    self.found.whole.push(inner.clone());
                }
                self.queue.push_back((inner, within));
            }
            false => {
                self.found.whole.push(inner.clone());
                self.record_file(inner, relevant)?;
            }
        }
        Ok(())
    }

    fn record_file(&mut self, path: PathBuf, relevant: RelevantPart) -> io::Result<()> {
        if self.depth == ScanDepth::Contents
            && let Some(state) = self.folder.read_state(&path, &mut self.budget)?
        {
            self.found.files.insert(path, ScannedEntry { relevant, state });
        }
        Ok(())
    }
}

/// What git itself looks for, so a repository without a folder of its own is found too.
pub(super) const REPOSITORY_PARTS: [&str; 3] = ["HEAD", "objects", "refs"];

fn is_scanned_repository(entries: &[(OsString, FileType)]) -> bool {
    REPOSITORY_PARTS.iter().all(|wanted| entries.iter().any(|(name, _)| name == wanted))
}

/// True if something of this name right below a repository, or in a folder of that name, can make git run something.
pub(super) fn runs_in_repository(name: &str) -> bool {
    ScanRegion::Git.repository_entry(name).is_some()
}
