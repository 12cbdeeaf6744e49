//! Which layers of the sandbox are in force, found out by trying.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::limits::sandbox_limit_counts_by_namespace;
use super::plan::{Around, Found, Root};
use super::policy::SandboxPolicy;
use super::{Network, SandboxPaths, bubblewrap, sandbox_wrapper_arguments};

/// How long a try may take: a busy machine is slow to start programs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Landlock before this version lets files be cut short: alone it is no policy.
const FIRST_WHOLE: u32 = 3;

/// Landlock from this version on keeps signals and abstract sockets inside.
const FIRST_SCOPED: u32 = 6;

/// Which layers are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layers {
    /// None, for this reason.
    None(String),
    /// These.
    Some(ActiveLayers),
}

/// The layers in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveLayers {
    /// What stands around the helper.
    pub around: Around,
    /// The version of Landlock; 0: none.
    pub landlock: u32,
    /// What root became.
    pub root: Root,
}

impl Layers {
    /// Tries them: bubblewrap around the kernel's own, else these alone.
    pub(super) fn probe_layers(helper: &Path, bounds: &SandboxPaths) -> Self {
        let alone = || try_sandbox_layers(Around::Nothing, helper, bounds);
        let whole = bubblewrap::find_bubblewrap().map(|_| try_sandbox_layers(Around::Bubblewrap, helper, bounds));
        match whole.unwrap_or_else(|| Err("bubblewrap is not installed".to_owned())) {
            Ok(standing) => Self::Some(standing),
            Err(first) => alone().map_or_else(|second| Self::None(format!("{first}; {second}")), Self::Some),
        }
    }

    /// Tries the kernel's own alone.
    pub(super) fn probe_alone(helper: &Path, bounds: &SandboxPaths) -> Self {
        try_sandbox_layers(Around::Nothing, helper, bounds).map_or_else(Self::None, Self::Some)
    }

    /// What somebody could still do, in words.
    pub fn missing_layers(&self) -> Vec<&'static str> {
        let Self::Some(standing) = self else { return vec!["every command asks"] };
        let alone = standing.around == Around::Nothing;
        let known = [
            (alone, "without bubblewrap commands see the names of other processes"),
            (alone, "without bubblewrap commands can change modes and times of your other files"),
            (alone, "without bubblewrap commands cannot use Unix sockets"),
            (alone && standing.landlock < FIRST_SCOPED, "this kernel lets commands signal your other processes"),
            (standing.root == Root::Bare, "reduced: commands run as root, though without its powers"),
            (
                !alone && !sandbox_limit_counts_by_namespace(),
                "this kernel, before 5.14, lets commands have any number of processes",
            ),
            (rustix::process::geteuid().is_root(), "the kernel lets commands of root have any number of processes"),
        ];
        known.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words).collect()
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Some(ActiveLayers { around, landlock, root }) = self else { return f.write_str("none") };
        if *around == Around::Bubblewrap {
            f.write_str("bubblewrap, ")?;
        }
        if *landlock > 0 {
            write!(f, "Landlock {landlock}, ")?;
        }
        f.write_str("seccomp")?;
        match root {
            Root::Namespace => f.write_str(", a user namespace"),
            Root::Nobody | Root::Bare => Ok(()),
        }
    }
}

/// Puts up a policy around nothing much and looks out of it.
fn try_sandbox_layers(around: Around, helper: &Path, bounds: &SandboxPaths) -> Result<ActiveLayers, String> {
    let name = if around == Around::Bubblewrap { "bubblewrap" } else { "Landlock" };
    let found =
        probe_layers_from_inside(around, helper, bounds).map_err(|error| format!("{name} does not work: {error}"))?;
    let whole = around == Around::Bubblewrap || found.landlock >= FIRST_WHOLE;
    match found.hides && found.closes && whole {
        true => Ok(ActiveLayers { around, landlock: found.landlock, root: found.root }),
        false => Err(format!("{name} does not keep what it should: {found:?}")),
    }
}

fn probe_layers_from_inside(around: Around, helper: &Path, bounds: &SandboxPaths) -> Result<Found, String> {
    let text = |error: std::io::Error| error.to_string();
    let room = bounds.scratch.join(format!("probe-{}-{around:?}", std::process::id()));
    let (hidden, lent, temporary) = (room.join("hidden"), room.join("lent"), room.join("temporary"));
    for folder in [&hidden, &lent, &temporary] {
        std::fs::create_dir_all(folder).map_err(text)?;
    }
    let bait = hidden.canonicalize().map_err(text)?.join("bait");
    std::fs::write(&bait, "bait").map_err(text)?;
    let mut policy = SandboxPolicy::for_folders(bounds, &[lent], Network::Closed);
    policy.hidden.extend(bait.parent().map(Path::to_owned));
    policy.secret.extend(bait.parent().map(Path::to_owned));
    policy.temporary = temporary;
    let words = sandbox_wrapper_arguments(around, helper, &policy).ok_or("it is not installed")?;
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg("--probe")
        .arg(&bait)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let said = run_layer_probe(command);
    if let Err(error) = std::fs::remove_dir_all(&room) {
        tracing::debug!(%error, "a probe's folder stays");
    }
    said
}

fn run_layer_probe(mut command: Command) -> Result<Found, String> {
    let mut child = command.env_clear().current_dir("/").spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if Instant::now() > deadline {
            let ended = child.kill().and_then(|()| child.wait());
            return Err(format!("it takes too long: {ended:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let (mut said, mut complaint) = (String::new(), String::new());
    child.stdout.take().map(|mut out| out.read_to_string(&mut said));
    child.stderr.take().map(|mut error| error.read_to_string(&mut complaint));
    serde_json::from_str(&said)
        .map_err(|_| complaint.trim().lines().next_back().unwrap_or("it says nothing").to_owned())
}
