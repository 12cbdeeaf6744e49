//! The settings as they are now: the file is looked at again when something is decided by them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use gander_tools::permission::Rule;
use serde_json::Value;

use super::agents_file::agents_file_path;
use super::settings::SETTINGS;
use super::{Config, TakesEffect};

/// A file that was written less than this long ago may still be being written.
const SETTLE: Duration = Duration::from_millis(50);

/// How often a file that keeps changing is waited for before it is left for the next look.
const MAX_WAITS: usize = 4;

/// Settings that follow their file. One that cannot be read or is wrong changes nothing: what was good stays. Nor does one
/// that is gone or empty: editors replace and truncate files while they save, and rules that deny must not go with that.
pub struct LiveConfig {
    /// What the process was started with.
    started: Arc<Config>,
    state: Mutex<LiveState>,
    on_change: Mutex<Vec<Subscriber>>,
    /// Held while subscribers are told, so that what they are told last is what is true last.
    telling: Mutex<()>,
}

/// Told of new settings.
type Subscriber = Arc<dyn Fn(&Arc<Config>) + Send + Sync>;

struct LiveState {
    seen: SettingsStamp,
    config: Arc<Config>,
    rules: Arc<[Rule]>,
    fault: Option<String>,
    /// Whether there ever was a file that said something.
    had_file: bool,
}

/// Tells one version of a file from another. A file that is replaced has another number, one that is written another time.
type FileStamp = Option<(SystemTime, u64, u64)>;

/// The files that settings come from: the owner's own, and those of `gander setup` and `gander agents`.
type SettingsStamp = [FileStamp; 3];

impl LiveConfig {
    /// Settings that begin as these.
    pub fn new(config: Config) -> Arc<Self> {
        let (seen, config) = (settings_stamp(&config), Arc::new(config));
        let rules = config.sections.permissions.rules.clone().into();
        let state =
            LiveState { seen, config: Arc::clone(&config), rules, fault: None, had_file: has_file_text(seen[0]) };
        Arc::new(Self {
            started: config,
            state: Mutex::new(state),
            on_change: Mutex::default(),
            telling: Mutex::default(),
        })
    }

    /// What the process was started with: settings that take effect at a restart are these.
    pub fn started(&self) -> &Config {
        &self.started
    }

    /// Calls this with new settings, whenever there are some.
    pub fn on_change(&self, told: impl Fn(&Arc<Config>) + Send + Sync + 'static) {
        self.on_change.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(told));
    }

    /// The settings of now. Looks at the files: one call of the system each, and only if one differs are they read.
    pub fn current(&self) -> Arc<Config> {
        let (config, changed) = {
            let mut state = self.lock();
            let changed = self.look(&mut state);
            (Arc::clone(&state.config), changed)
        };
        if changed {
            self.tell_subscribers();
        }
        config
    }

    /// Without the lock of the state: whoever is told may ask for settings itself. Whoever finds somebody telling leaves it
    /// to them, since they look for newer settings when they are done.
    fn tell_subscribers(&self) {
        loop {
            let Ok(telling) = self.telling.try_lock() else { return };
            let config = Arc::clone(&self.lock().config);
            let told = self.on_change.lock().unwrap_or_else(PoisonError::into_inner).clone();
            told.iter().for_each(|told| told(&config));
            drop(telling);
            if Arc::ptr_eq(&config, &self.lock().config) {
                return;
            }
        }
    }

    /// The owner's rules of now.
    pub fn rules(&self) -> Arc<[Rule]> {
        self.current();
        Arc::clone(&self.lock().rules)
    }

    /// Why the file as it is now does not count, if it does not.
    pub fn fault(&self) -> Option<String> {
        self.current();
        self.lock().fault.clone()
    }

    /// Every setting as this process uses it: those that need a restart as they were at its start.
    pub fn active_settings(&self) -> Value {
        let mut active = serde_json::to_value(&self.started.sections).unwrap_or_default();
        let now = serde_json::to_value(&self.current().sections).unwrap_or_default();
        for setting in SETTINGS.iter().filter(|setting| setting.takes_effect() != TakesEffect::Restart) {
            active[setting.section()][setting.name()] = now[setting.section()][setting.name()].clone();
        }
        active
    }

    /// Reads the file again if it is another. True if there are new settings.
    fn look(&self, state: &mut LiveState) -> bool {
        let seen = settings_stamp(&self.started);
        if seen == state.seen {
            return false;
        }
        let Some(seen) = settled_stamp(&self.started, seen) else { return false };
        let had_file = state.had_file;
        state.had_file |= has_file_text(seen[0]);
        state.seen = seen;
        if had_file && !has_file_text(seen[0]) {
            let file = self.started.file.display();
            tracing::error!(%file, "the settings file is gone or empty: what it said before stays until a restart");
            state.fault = Some(format!("the settings file is gone or empty, what it said before stays active: {file}"));
            return false;
        }
        let source = &self.started.source;
        match Config::load(&source.flags, &source.environment) {
            Ok(read) => {
                tracing::info!(file = %self.started.file.display(), "the settings changed");
                let config = self.started.with_settings_of(read);
                state.rules = config.sections.permissions.rules.clone().into();
                state.config = Arc::new(config);
                state.fault = None;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the settings file is wrong: what it said before stays");
                state.fault = Some(error.to_string());
                false
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveConfig").field("file", &self.started.file).finish_non_exhaustive()
    }
}

fn settings_stamp(config: &Config) -> SettingsStamp {
    [
        settings_file_stamp(&config.file),
        settings_file_stamp(&config.paths.provider_keys()),
        settings_file_stamp(&agents_file_path(&config.file)),
    ]
}

/// Waits until nobody writes any more. `None` if that takes too long: the next look tries again.
fn settled_stamp(config: &Config, mut seen: SettingsStamp) -> Option<SettingsStamp> {
    for _ in 0..MAX_WAITS {
        let written = seen.iter().flatten().map(|(written, ..)| *written).max();
        let age = written.and_then(|written| written.elapsed().ok());
        match age.and_then(|age| SETTLE.checked_sub(age)) {
            Some(rest) => std::thread::sleep(rest),
            None => return Some(seen),
        }
        seen = settings_stamp(config);
    }
    None
}

fn has_file_text(stamp: FileStamp) -> bool {
    stamp.is_some_and(|(_, length, _)| length > 0)
}

fn settings_file_stamp(path: &Path) -> FileStamp {
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len(), file.ino()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::{Environment, Flags};

    #[test]
    fn a_good_file_counts_at_once_and_a_wrong_one_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("gander.toml");
        std::fs::write(&file, "[agent]\nmax_turns = 7\n").unwrap();
        let flags = Flags { config: Some(file.clone()), data: Some(root.path().join("data")), values: Vec::new() };
        let live = LiveConfig::new(Config::load(&flags, &Environment::default()).unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&told);
        live.on_change(move |config| seen.lock().unwrap().push(config.sections.agent.max_turns));
        assert_eq!(live.current().sections.agent.max_turns, 7);
        let deny = "[permissions]\nrules = [{ tool = \"shell\", action = \"deny\" }]\n";
        let restart = "[server]\nlisten = \"127.0.0.1:1\"\n";
        std::fs::write(&file, format!("[agent]\nmax_turns = 8\n{deny}{restart}")).unwrap();
        assert_eq!((live.rules().len(), live.current().sections.agent.max_turns), (1, 8));
        std::fs::write(&file, "[agent]\nmax_turns = \"many\"\n").unwrap();
        assert!(live.fault().unwrap().contains("agent.max_turns"));
        assert_eq!((live.rules().len(), live.current().sections.agent.max_turns), (1, 8));
        let active = live.active_settings();
        assert_eq!(active["agent"]["max_turns"], 8);
        assert_eq!(active["server"]["listen"], "127.0.0.1:4747", "an address is taken at a start");
        assert_eq!(*told.lock().unwrap(), [8]);
    }

    #[test]
    fn a_file_that_is_gone_or_empty_for_a_moment_takes_no_rule_with_it() {
        let root = tempfile::tempdir().unwrap();
        // The file of nobody's choice: one that is missing at a start says nothing.
        let home = root.path().to_str().unwrap().to_owned();
        let environment = Environment::from_pairs([("HOME".to_owned(), home)]);
        let file = root.path().join(".config/gander/gander.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let deny = "[permissions]\nrules = [{ tool = \"shell\", action = \"deny\" }]\n";
        std::fs::write(&file, deny).unwrap();
        let live = LiveConfig::new(Config::load(&Flags::default(), &environment).unwrap());
        assert_eq!(live.rules().len(), 1);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(live.rules().len(), 1, "an editor renamed it away");
        assert!(live.fault().unwrap().contains("is gone or empty"));
        std::fs::write(&file, "").unwrap();
        assert_eq!(live.rules().len(), 1, "an editor truncated it");
        std::fs::write(&file, format!("{deny}# saved\n")).unwrap();
        assert_eq!((live.rules().len(), live.fault()), (1, None));
        std::fs::write(&file, "# no rules any more\n").unwrap();
        assert_eq!((live.rules().len(), live.fault()), (0, None), "who takes the rules out, takes them out");
    }
}
