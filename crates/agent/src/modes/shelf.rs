//! The agents in force: built in, with the owner's folder laid over them and read again when it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::library::Library;
use super::read::Page;

/// How long a look at the folder counts.
const FRESH: Duration = Duration::from_millis(500);

/// More files than this are not read.
const MOST_FILES: usize = 500;

/// The agents in force. Files that cannot be read are logged and left out.
#[derive(Debug)]
pub struct Shelf {
    folder: Option<PathBuf>,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    library: Arc<Library>,
    looked: Option<Instant>,
    marks: Vec<Mark>,
}

/// What tells a changed file: its path, size and time.
type Mark = (PathBuf, u64, Option<SystemTime>);

impl Shelf {
    /// Only what is built in.
    pub fn built_in() -> Self {
        let library = Arc::new(Library::built_in());
        Self { folder: None, now: Mutex::new(Now { library, looked: None, marks: Vec::new() }) }
    }

    /// With the files of this folder, which need not exist.
    pub fn with(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::built_in() }
    }

    /// The agents as the files are now, or were a moment ago.
    pub fn library(&self) -> Arc<Library> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &self.folder
            && now.looked.is_none_or(|looked| looked.elapsed() >= FRESH)
        {
            now.look(folder);
        }
        Arc::clone(&now.library)
    }
}

impl Now {
    fn look(&mut self, folder: &Path) {
        let marks = marks(folder);
        self.looked = Some(Instant::now());
        if marks == self.marks {
            return;
        }
        let pages: Vec<Page> = marks.iter().filter_map(|(path, ..)| page(folder, path)).collect();
        let mut library = Library::built_in();
        for bad in library.lay(&pages) {
            tracing::warn!(folder = %folder.display(), "an agent's file is left out: {bad}");
        }
        self.library = Arc::new(library);
        self.marks = marks;
    }
}

/// Files of the folder and of the folders in it, by name.
fn marks(folder: &Path) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (path, metadata) in entries(folder) {
        if metadata.is_dir() {
            marks.extend(entries(&path).into_iter().filter_map(mark));
        } else {
            marks.extend(mark((path, metadata)));
        }
    }
    marks.sort();
    marks.truncate(MOST_FILES);
    marks
}

/// A folder that cannot be read is an empty one: it need not exist.
fn entries(folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    listed.filter_map(|entry| Some((entry.path(), fs::metadata(entry.path()).ok()?))).collect()
}

fn mark((path, metadata): (PathBuf, fs::Metadata)) -> Option<Mark> {
    let is_page = metadata.is_file() && path.extension().is_some_and(|extension| extension == "md");
    is_page.then(|| (path, metadata.len(), metadata.modified().ok()))
}

fn page(folder: &Path, path: &Path) -> Option<Page> {
    let names: Option<Vec<&str>> =
        path.strip_prefix(folder).ok()?.components().map(|name| name.as_os_str().to_str()).collect();
    let read = fs::read_to_string(path);
    if let Err(error) = &read {
        tracing::warn!(path = %path.display(), %error, "an agent's file cannot be read");
    }
    Some(Page { path: names?.join("/"), text: read.ok()? })
}
