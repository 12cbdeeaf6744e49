//! One folder that commands work in, and what in it could make something run, as it was before they did.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::change::{self, Change};
use super::folder::{Folder, Room};
use super::scan::{Entry, Found, Reading, scan};

/// Bytes of a note that is read back.
const LONGEST_NOTE: u64 = 256 << 20;

/// One folder that commands work in.
pub(super) struct WatchedRoot {
    root: PathBuf,
    /// Who begins, ends or asks holds it; meanwhile nobody else does.
    pub(super) gate: Arc<Semaphore>,
    state: Mutex<Watch>,
    /// Where a note of what was there survives the server.
    note: Option<PathBuf>,
}

#[derive(Default)]
struct Watch {
    running: usize,
    baseline: Option<Baseline>,
    /// The note of an earlier server was looked for.
    checked: bool,
}

/// What was there before commands ran.
#[derive(Clone, Serialize, Deserialize)]
struct Baseline {
    root: PathBuf,
    /// Seconds since 1970.
    since: i64,
    found: Found,
}

/// What a look at the folder gave.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) changes: Vec<Change>,
    /// What could not be done about it.
    pub(super) problems: Vec<String>,
}

/// What is done with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChange {
    /// It is undone until somebody says yes.
    SetAside,
    /// It stays, and is told.
    Tell,
}

impl WatchedRoot {
    pub(super) fn new(root: PathBuf, note: Option<PathBuf>) -> Self {
        Self { root, gate: Arc::new(Semaphore::new(1)), state: Mutex::default(), note }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lock().running == 0
    }

    /// A command begins. Commands at the same time share what was there before the first of them.
    pub(super) fn enter(&self) -> io::Result<()> {
        let mut watch = self.lock();
        if watch.running == 0 {
            let baseline = self.take_baseline()?;
            self.write_note(&baseline);
            watch.baseline = Some(baseline);
        }
        watch.running += 1;
        Ok(())
    }

    /// A command has ended, with everything it started.
    pub(super) fn leave(&self, manner: OnChange) -> io::Result<Outcome> {
        let mut watch = self.lock();
        let outcome = match watch.baseline.as_mut() {
            Some(baseline) => settle(baseline, manner),
            None => Ok(Outcome::default()),
        };
        watch.running = watch.running.saturating_sub(1);
        if watch.running == 0 {
            watch.baseline = None;
            self.remove_note();
        }
        outcome
    }

    /// What commands of an earlier server did here, if that ended before it could look.
    pub(super) fn left_over(&self) -> io::Result<Outcome> {
        let mut watch = self.lock();
        if std::mem::replace(&mut watch.checked, true) || watch.running > 0 {
            return Ok(Outcome::default());
        }
        let Some(mut baseline) = self.read_note() else { return Ok(Outcome::default()) };
        let outcome = settle(&mut baseline, OnChange::SetAside);
        self.remove_note();
        outcome
    }

    /// Somebody said yes: this is how it is to be from now on.
    pub(super) fn keep(&self, changes: &[Change]) -> Vec<String> {
        let folder = match Folder::open(&self.root) {
            Ok(folder) => folder,
            Err(error) => return vec![error.to_string()],
        };
        let problems = change::put_in_place(&folder, changes);
        if let Some(baseline) = self.lock().baseline.as_mut() {
            changes.iter().for_each(|change| baseline.accept(&change.path, change.after.clone()));
        }
        problems
    }

    /// Somebody else changed a file with good reason while commands run.
    pub(super) fn accept(&self, path: &Path) {
        let Ok(relative) = path.strip_prefix(&self.root) else { return };
        let mut watch = self.lock();
        let Some(baseline) = watch.baseline.as_mut() else { return };
        let state = Folder::open(&self.root).and_then(|folder| folder.state(relative, &mut Room(u64::MAX)));
        let entry = state.ok().flatten().map(|state| Entry { counts: change::counts_of(relative), state });
        baseline.accept(relative, entry);
    }

    fn take_baseline(&self) -> io::Result<Baseline> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let found = scan(&Folder::open(&self.root)?, Reading::Contents)?;
        Ok(Baseline { root: self.root.clone(), since: since.cast_signed(), found })
    }

    /// Not synced: it is for a server that was killed, not for a machine that was.
    fn write_note(&self, baseline: &Baseline) {
        let Some(note) = &self.note else { return };
        let written =
            serde_json::to_vec(baseline).map_err(io::Error::other).and_then(|bytes| write_private(note, &bytes));
        if let Err(error) = written {
            tracing::warn!(%error, "what protected files held cannot be noted");
        }
    }

    fn read_note(&self) -> Option<Baseline> {
        let note = self.note.as_ref()?;
        note.metadata().ok().filter(|note| note.len() <= LONGEST_NOTE)?;
        let baseline: Baseline = serde_json::from_slice(&std::fs::read(note).ok()?).ok()?;
        Some(baseline).filter(|baseline| baseline.root == self.root)
    }

    fn remove_note(&self) {
        if let Some(note) = &self.note
            && let Err(error) = std::fs::remove_file(note)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a note of protected files stays");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Baseline {
    fn accept(&mut self, path: &Path, entry: Option<Entry>) {
        match entry {
            Some(entry) => self.found.files.insert(path.to_owned(), entry),
            None => self.found.files.remove(path),
        };
    }
}

/// Looks again, and undoes what differs if that is wanted.
fn settle(baseline: &mut Baseline, manner: OnChange) -> io::Result<Outcome> {
    let folder = Folder::open(&baseline.root)?;
    let mut after = scan(&folder, Reading::Contents)?;
    let mut problems = Vec::new();
    if manner == OnChange::SetAside {
        let moved = change::moved(&baseline.found, &after);
        for (now, then) in &moved {
            match folder.move_back(now, then) {
                Ok(()) => problems.push(format!("{} was moved to {}, and back", then.display(), now.display())),
                Err(error) => problems.push(format!("{} was moved away: {error}", then.display())),
            }
        }
        if !moved.is_empty() {
            after = scan(&folder, Reading::Contents)?;
        }
    }
    let changes = change::compare(&folder, &baseline.found, &after, baseline.since);
    if !after.complete && baseline.found.complete {
        problems.push("there are too many files to look through all of them for what could run".to_owned());
    }
    match manner {
        OnChange::SetAside => problems.extend(change::set_aside(&folder, &baseline.found, &changes)),
        OnChange::Tell => changes.iter().for_each(|change| baseline.accept(&change.path, change.after.clone())),
    }
    Ok(Outcome { changes, problems })
}

/// Writes a file that nobody else reads.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    if let Some(parent) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let temporary = path.with_extension("tmp");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    std::fs::rename(&temporary, path)
}
