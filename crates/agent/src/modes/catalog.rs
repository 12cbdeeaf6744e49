//! The agents in force: built in, with the owner's folder laid over them, and over these the folder of a project that
//! is trusted. Each is read again when it changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, fs};

use gander_tools::FileAccess;

use super::mode_file::ModeFile;
use super::mode_set::ModeSet;

/// How long a look at a folder counts.
const RECHECK_AFTER: Duration = Duration::from_millis(500);

/// More files than this are not read.
const MAX_FILES: usize = 500;

/// A longer file is not even read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Projects that are kept in mind. Of more, the one that was looked at first is forgotten.
const MAX_PROJECTS: usize = 256;

/// The agents in force. Files that cannot be read are logged and left out.
pub struct AgentCatalog {
    built_in: Arc<ModeSet>,
    own: Option<Mutex<FolderLayer>>,
    projects: Option<Projects>,
}

/// A shelf as it is in one folder.
#[derive(Clone, Debug)]
pub struct ScopedCatalog {
    shelf: Arc<AgentCatalog>,
    folder: PathBuf,
}

/// What projects bring along.
struct Projects {
    /// Where they keep it, from their own folder on.
    place: PathBuf,
    /// How it is read: a link in a project leads nowhere else.
    access: FileAccess,
    /// Whether it counts.
    trusted: Box<dyn Fn(&Path) -> bool + Send + Sync>,
    known: Mutex<HashMap<PathBuf, FolderLayer>>,
}

/// The files of one folder, laid over what is below.
struct FolderLayer {
    folder: PathBuf,
    /// For folders of projects. The owner's own may hold links to wherever the owner keeps things.
    access: Option<FileAccess>,
    below: Arc<ModeSet>,
    modes: Arc<ModeSet>,
    looked: Option<Instant>,
    marks: Vec<FileStamp>,
}

/// What tells a changed file: its path, size and time.
type FileStamp = (PathBuf, u64, Option<SystemTime>);

impl AgentCatalog {
    /// Only what is built in.
    pub fn built_in() -> Self {
        Self { built_in: Arc::new(ModeSet::built_in()), own: None, projects: None }
    }

    /// With the files of this folder, which need not exist.
    pub fn from_folder(folder: PathBuf) -> Self {
        let shelf = Self::built_in();
        let layer = FolderLayer::new(folder, None, &shelf.built_in);
        Self { own: Some(Mutex::new(layer)), ..shelf }
    }

    /// With what projects keep in this place of theirs, where that counts.
    pub fn with_projects(
        self,
        place: PathBuf,
        access: FileAccess,
        trusted: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        let projects = Projects { place, access, trusted: Box::new(trusted), known: Mutex::default() };
        Self { projects: Some(projects), ..self }
    }

    /// The agents of no project as the files are now, or were a moment ago.
    pub fn modes(&self) -> Arc<ModeSet> {
        match &self.own {
            Some(layer) => lock_mode_catalog_cache(layer).modes_over(&self.built_in),
            None => Arc::clone(&self.built_in),
        }
    }

    /// The agents of a session in this folder. Whether it is trusted counts at once.
    pub fn modes_in(&self, folder: &Path) -> Arc<ModeSet> {
        let below = self.modes();
        let Some(projects) = &self.projects else { return below };
        let files = folder.join(&projects.place);
        if !files.is_dir() || !(projects.trusted)(folder) {
            return below;
        }
        let mut known = lock_mode_catalog_cache(&projects.known);
        if known.len() >= MAX_PROJECTS && !known.contains_key(folder) {
            let first = known.iter().min_by_key(|(_, layer)| layer.looked).map(|(folder, _)| folder.clone());
            first.map(|folder| known.remove(&folder));
        }
        let layer = || FolderLayer::new(files, Some(projects.access.clone()), &below);
        known.entry(folder.to_owned()).or_insert_with(layer).modes_over(&below)
    }

    /// The shelf as it is in this folder.
    pub fn for_folder(self: &Arc<Self>, folder: impl Into<PathBuf>) -> ScopedCatalog {
        ScopedCatalog { shelf: Arc::clone(self), folder: folder.into() }
    }
}

impl ScopedCatalog {
    /// The agents as the files are now, or were a moment ago.
    pub fn modes(&self) -> Arc<ModeSet> {
        self.shelf.modes_in(&self.folder)
    }
}

impl fmt::Debug for AgentCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCatalog").finish_non_exhaustive()
    }
}

impl FolderLayer {
    fn new(folder: PathBuf, access: Option<FileAccess>, below: &Arc<ModeSet>) -> Self {
        Self { folder, access, below: Arc::clone(below), modes: Arc::clone(below), looked: None, marks: Vec::new() }
    }

    /// What there is with this below.
    fn modes_over(&mut self, below: &Arc<ModeSet>) -> Arc<ModeSet> {
        let same = Arc::ptr_eq(below, &self.below);
        if !same || self.looked.is_none_or(|looked| looked.elapsed() >= RECHECK_AFTER) {
            let marks = mode_catalog_stamps(&self.folder);
            self.looked = Some(Instant::now());
            if !same || marks != self.marks {
                self.add_files(below, marks);
            }
        }
        Arc::clone(&self.modes)
    }

    fn add_files(&mut self, below: &Arc<ModeSet>, marks: Vec<FileStamp>) {
        let mode_files: Vec<ModeFile> = marks.iter().filter_map(|mark| self.read_file(mark)).collect();
        let mut modes = ModeSet::clone(below);
        for bad in modes.add_files(&mode_files) {
            tracing::warn!(folder = %self.folder.display(), "an agent's file is left out: {bad}");
        }
        // Without files it is what is below, and is known as such.
        self.modes = if mode_files.is_empty() { Arc::clone(below) } else { Arc::new(modes) };
        (self.below, self.marks) = (Arc::clone(below), marks);
    }
}

impl FolderLayer {
    fn read_file(&self, (path, size, _): &FileStamp) -> Option<ModeFile> {
        if *size > MAX_FILE_BYTES {
            tracing::warn!(path = %path.display(), size, "an agent's file is too large to be one");
            return None;
        }
        let names: Option<Vec<&str>> =
            path.strip_prefix(&self.folder).ok()?.components().map(|name| name.as_os_str().to_str()).collect();
        let name = names?.join("/");
        let read = match &self.access {
            Some(access) => read_confined_mode_catalog(access, &self.folder, &name),
            None => fs::read_to_string(path).map_err(|error| error.to_string()),
        };
        if let Err(error) = &read {
            tracing::warn!(path = %path.display(), %error, "an agent's file cannot be read");
        }
        Some(ModeFile { path: name, text: read.ok()? })
    }
}

fn read_confined_mode_catalog(access: &FileAccess, folder: &Path, name: &str) -> Result<String, String> {
    let opened = access.open(folder, &[]).map_err(|error| error.to_string())?;
    opened.read_redacted(name, MAX_FILE_BYTES).map(|(_, text)| text).map_err(|error| error.to_string())
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_mode_catalog_cache<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files of the folder and of the folders in it, by name.
fn mode_catalog_stamps(folder: &Path) -> Vec<FileStamp> {
    let mut marks = Vec::new();
    for (path, metadata) in read_mode_catalog_folder(folder) {
        if metadata.is_dir() {
            marks.extend(read_mode_catalog_folder(&path).into_iter().filter_map(mode_catalog_stamp));
        } else {
            marks.extend(mode_catalog_stamp((path, metadata)));
        }
    }
    marks.sort();
    marks.truncate(MAX_FILES);
    marks
}

/// A folder that cannot be read is an empty one: it need not exist.
fn read_mode_catalog_folder(folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    listed.filter_map(|entry| Some((entry.path(), fs::metadata(entry.path()).ok()?))).collect()
}

fn mode_catalog_stamp((path, metadata): (PathBuf, fs::Metadata)) -> Option<FileStamp> {
    let is_page = metadata.is_file() && path.extension().is_some_and(|extension| extension == "md");
    is_page.then(|| (path, metadata.len(), metadata.modified().ok()))
}
