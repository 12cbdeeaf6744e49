//! One folder that commands work in, and what in it could make something run, as it was before they did.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::change::{self, Change};
use super::open_folder::{ByteBudget, OpenFolder};
use super::scan::{ScanDepth, ScanResult, ScannedEntry, scan_protected_paths};

/// Bytes of a note that is read back.
const MAX_BASELINE_BYTES: u64 = 256 << 20;

/// Programs of a server that ended live no longer than this after it said so, in seconds.
const LAST_WRITES: i64 = 10;

/// One folder that commands work in.
pub(super) struct WatchedRoot {
    root: PathBuf,
    /// Who begins, ends or asks holds it; meanwhile nobody else does.
    pub(super) gate: Arc<Semaphore>,
    state: Mutex<WatchState>,
    /// Where a note of what was there survives the server.
    baseline_file: Option<PathBuf>,
}

#[derive(Default)]
struct WatchState {
    running: usize,
    baseline: Option<Baseline>,
    /// What was there when the last command ended, where programs go on running after it.
    last_known: Option<Baseline>,
    /// What was there before commands of an earlier server that ended before it could look.
    interrupted: Option<Baseline>,
    /// What is last known comes from an earlier server, and nobody has compared with it yet.
    has_old_note: bool,
    /// The note of an earlier server was looked for.
    checked: bool,
}

/// What was there before commands ran.
#[derive(Clone, Serialize, Deserialize)]
struct Baseline {
    root: PathBuf,
    /// Seconds since 1970.
    since: i64,
    found: ScanResult,
    #[serde(default)]
    moment: BaselineMoment,
    /// When the server ended in order, in seconds since 1970: what changed later, its programs did not do.
    #[serde(default)]
    ended: Option<i64>,
}

/// When a baseline was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum BaselineMoment {
    /// Before commands that run.
    #[default]
    BeforeCommands,
    /// When the last of them had ended, and programs went on running.
    AfterCommands,
}

/// What a look at the folder gave.
#[derive(Default)]
pub(super) struct Comparison {
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
    /// It stays until somebody says no: it may be the person's own.
    Ask,
}

/// What may change files here once a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// Nothing of ours: everything that it started is dead.
    Nothing,
    /// A program that goes on running: the next command is preceded by a comparison.
    Programs,
}

impl WatchedRoot {
    pub(super) fn new(root: PathBuf, baseline_file: Option<PathBuf>) -> Self {
        Self { root, gate: Arc::new(Semaphore::new(1)), state: Mutex::default(), baseline_file }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn is_idle(&self) -> bool {
        let watch = self.lock_state();
        watch.running == 0 && watch.last_known.is_none() && watch.interrupted.is_none()
    }

    /// Nothing is compared any more before the next command.
    pub(super) fn forget_last_known(&self) {
        let mut watch = self.lock_state();
        watch.last_known = None;
        self.save_state(&watch);
    }

    /// An earlier server left a note of what was here while its programs ran, and nobody has compared with it yet.
    pub(super) fn has_old_note(&self) -> bool {
        let mut watch = self.lock_state();
        self.look_for_note(&mut watch);
        watch.has_old_note
    }

    /// The server ends in order: what changes from now on, its programs do not do.
    pub(super) fn note_server_end(&self) {
        let mut watch = self.lock_state();
        if let Some(last_known) = &mut watch.last_known {
            last_known.ended = Some(watched_root_seconds());
        }
        self.save_state(&watch);
    }

    pub(super) fn has_last_known(&self) -> bool {
        self.lock_state().last_known.is_some()
    }

    /// What changed since the last command ended. While another one runs, its end is when that is looked for.
    pub(super) fn compare_with_last_known(&self, on_change: OnChange) -> io::Result<Comparison> {
        let mut watch = self.lock_state();
        self.look_for_note(&mut watch);
        let idle = watch.running == 0;
        let Some(last_known) = watch.last_known.as_mut().filter(|_| idle) else { return Ok(Comparison::default()) };
        let outcome = compare_and_undo(last_known, on_change)?;
        // While somebody is asked the note stays what it is.
        if outcome.changes.is_empty() || on_change != OnChange::Ask {
            last_known.ended = None;
            watch.has_old_note = false;
            self.save_state(&watch);
        }
        Ok(outcome)
    }

    /// A command begins. Commands at the same time share what was there before the first of them.
    pub(super) fn begin_command(&self) -> io::Result<()> {
        let mut watch = self.lock_state();
        self.look_for_note(&mut watch);
        if watch.running == 0 {
            // What an earlier server could not look at is looked at when this command ends.
            let baseline = match watch.interrupted.take() {
                Some(interrupted) => interrupted,
                None => self.take_baseline()?,
            };
            watch.baseline = Some(baseline);
        }
        watch.running += 1;
        if watch.running == 1 {
            self.save_state(&watch);
        }
        Ok(())
    }

    /// A command has ended, with everything it started.
    pub(super) fn end_command(&self, on_change: OnChange, afterwards: Afterwards) -> io::Result<Comparison> {
        let mut watch = self.lock_state();
        let outcome = match watch.baseline.as_mut() {
            Some(baseline) => compare_and_undo(baseline, on_change),
            None => Ok(Comparison::default()),
        };
        watch.running = watch.running.saturating_sub(1);
        if watch.running == 0 {
            let baseline = watch.baseline.take();
            let compares = afterwards == Afterwards::Programs || watch.last_known.is_some();
            watch.last_known = baseline.filter(|_| compares);
            self.save_state(&watch);
        }
        outcome
    }

    /// What commands of an earlier server did here, if that ended before it could look.
    pub(super) fn recover_interrupted(&self) -> io::Result<Comparison> {
        let mut watch = self.lock_state();
        self.look_for_note(&mut watch);
        let Some(mut baseline) = watch.interrupted.take() else { return Ok(Comparison::default()) };
        let outcome = compare_and_undo(&mut baseline, OnChange::SetAside);
        self.save_state(&watch);
        outcome
    }

    /// Reads what an earlier server left, once.
    fn look_for_note(&self, watch: &mut WatchState) {
        if std::mem::replace(&mut watch.checked, true) {
            return;
        }
        let Some(baseline) = self.load_baseline() else { return };
        match baseline.moment {
            BaselineMoment::BeforeCommands => watch.interrupted = Some(baseline),
            BaselineMoment::AfterCommands => {
                (watch.last_known, watch.has_old_note) = (Some(baseline), true);
            }
        }
    }

    /// Somebody said yes: this is how it is to be from now on.
    pub(super) fn apply_changes(&self, changes: &[Change]) -> Vec<String> {
        let folder = match OpenFolder::open(&self.root) {
            Ok(folder) => folder,
            Err(error) => return vec![error.to_string()],
        };
        let problems = change::redo_changes(&folder, changes);
        self.note_changes(changes);
        problems
    }

    /// Somebody said yes to what is there already.
    pub(super) fn note_changes(&self, changes: &[Change]) {
        let mut watch = self.lock_state();
        for baseline in watch.all_baselines() {
            changes.iter().for_each(|change| baseline.update_entry(&change.path, change.after.clone()));
        }
        watch.has_old_note = false;
        self.save_state(&watch);
    }

    /// Somebody said no to what is there already. Returns what could not be undone.
    pub(super) fn undo_changes(&self, changes: &[Change]) -> Vec<String> {
        let folder = match OpenFolder::open(&self.root) {
            Ok(folder) => folder,
            Err(error) => return vec![error.to_string()],
        };
        let mut watch = self.lock_state();
        watch.has_old_note = false;
        match watch.all_baselines().next() {
            Some(baseline) => change::undo_changes(&folder, &baseline.found, changes),
            None => change::undo_changes(&folder, &ScanResult::default(), changes),
        }
    }

    /// Somebody else changed a file with good reason while commands run.
    pub(super) fn accept_change(&self, path: &Path) {
        let Ok(relative) = path.strip_prefix(&self.root) else { return };
        let mut watch = self.lock_state();
        let state =
            OpenFolder::open(&self.root).and_then(|folder| folder.read_state(relative, &mut ByteBudget(u64::MAX)));
        let entry = state
            .ok()
            .flatten()
            .map(|state| ScannedEntry { relevant: change::relevant_part_of_change(relative), state });
        watch.all_baselines().for_each(|baseline| baseline.update_entry(relative, entry.clone()));
        self.save_state(&watch);
    }

    fn take_baseline(&self) -> io::Result<Baseline> {
        let found = scan_protected_paths(&OpenFolder::open(&self.root)?, ScanDepth::Contents)?;
        let (root, since) = (self.root.clone(), watched_root_seconds());
        Ok(Baseline { root, since, found, moment: BaselineMoment::BeforeCommands, ended: None })
    }

    /// Notes what the next server has to compare with, if this one ends now.
    fn save_state(&self, watch: &WatchState) {
        let noted = match (&watch.baseline, &watch.interrupted, &watch.last_known) {
            (Some(baseline), _, _) | (None, Some(baseline), _) => {
                Some(Baseline { moment: BaselineMoment::BeforeCommands, ..baseline.clone() })
            }
            (None, None, Some(baseline)) => {
                Some(Baseline { moment: BaselineMoment::AfterCommands, ..baseline.clone() })
            }
            (None, None, None) => None,
        };
        match noted {
            Some(baseline) => self.save_baseline(&baseline),
            None => self.remove_baseline_file(),
        }
    }

    /// Not synced: it is for a server that was killed, not for a machine that was.
    fn save_baseline(&self, baseline: &Baseline) {
        let Some(baseline_file) = &self.baseline_file else { return };
        let written = serde_json::to_vec(baseline)
            .map_err(io::Error::other)
            .and_then(|bytes| write_private_baseline(baseline_file, &bytes));
        if let Err(error) = written {
            tracing::warn!(%error, "what protected files held cannot be noted");
        }
    }

    fn load_baseline(&self) -> Option<Baseline> {
        let baseline_file = self.baseline_file.as_ref()?;
        baseline_file.metadata().ok().filter(|metadata| metadata.len() <= MAX_BASELINE_BYTES)?;
        let baseline: Baseline = serde_json::from_slice(&std::fs::read(baseline_file).ok()?).ok()?;
        Some(baseline).filter(|baseline| baseline.root == self.root)
    }

    fn remove_baseline_file(&self) {
        if let Some(baseline_file) = &self.baseline_file
            && let Err(error) = std::fs::remove_file(baseline_file)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a note of protected files stays");
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    fn all_baselines(&mut self) -> impl Iterator<Item = &mut Baseline> {
        self.baseline.iter_mut().chain(&mut self.last_known)
    }
}

impl Baseline {
    fn update_entry(&mut self, path: &Path, entry: Option<ScannedEntry>) {
        match entry {
            Some(entry) => self.found.files.insert(path.to_owned(), entry),
            None => self.found.files.remove(path),
        };
    }
}

/// Looks again, and undoes what differs if that is wanted.
fn compare_and_undo(baseline: &mut Baseline, on_change: OnChange) -> io::Result<Comparison> {
    let folder = OpenFolder::open(&baseline.root)?;
    let mut after = scan_protected_paths(&folder, ScanDepth::Contents)?;
    let mut problems = Vec::new();
    if on_change == OnChange::SetAside {
        let moved = change::moved_repositories(&baseline.found, &after);
        for (now, then) in &moved {
            match folder.move_folder(now, then) {
                Ok(()) => problems.push(format!("{} was moved to {}, and back", then.display(), now.display())),
                Err(error) => problems.push(format!("{} was moved away: {error}", then.display())),
            }
        }
        if !moved.is_empty() {
            after = scan_protected_paths(&folder, ScanDepth::Contents)?;
        }
    }
    let mut changes = change::compare_scans(&folder, &baseline.found, &after, baseline.since);
    let root = baseline.root.clone();
    if let Some(ended) = baseline.ended {
        for own in
            changes.extract_if(.., |change| !is_older_than_watched_root(&root.join(&change.path), ended + LAST_WRITES))
        {
            baseline.update_entry(&own.path, own.after);
        }
    }
    if !after.complete && baseline.found.complete {
        problems.push("there are too many files to look through all of them for what could run".to_owned());
    }
    match on_change {
        OnChange::SetAside => problems.extend(change::undo_changes(&folder, &baseline.found, &changes)),
        OnChange::Tell => changes.iter().for_each(|change| baseline.update_entry(&change.path, change.after.clone())),
        OnChange::Ask => {}
    }
    Ok(Comparison { changes, problems })
}

/// True if this was there by then as it is now. Nobody sets the time of a change but the system's clock.
fn is_older_than_watched_root(path: &Path, seconds: i64) -> bool {
    path.symlink_metadata().is_ok_and(|there| std::os::unix::fs::MetadataExt::ctime(&there) <= seconds)
}

fn watched_root_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    since.cast_signed()
}

/// Writes a file that nobody else reads.
pub(super) fn write_private_baseline(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
