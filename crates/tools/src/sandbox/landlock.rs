//! Which files and ports a fenced command reaches: a Landlock ruleset.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::policy::{Network, SandboxPolicy};

/// The newest version that this program knows; older kernels enforce what they can.
const NEWEST: ABI = ABI::V7;

/// Devices that every program expects.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// What is lent, as Landlock sees it.
pub(super) struct Lent {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// Folders of which names may be seen.
    list: Vec<PathBuf>,
}

impl Lent {
    /// Inside of bubblewrap hidden things are not there: only writing is left to be told apart.
    pub(super) fn inside_bubblewrap(policy: &SandboxPolicy) -> Self {
        let private = ["/tmp", "/var/tmp", "/dev"].map(PathBuf::from);
        let write = policy.writable.iter().cloned().chain(private).chain(policy.home.clone()).collect();
        Self { read: vec!["/".into()], write, list: Vec::new() }
    }

    /// Without it everything that is to be seen is named, and what holds something hidden is taken apart.
    pub(super) fn without_bubblewrap(policy: &SandboxPolicy) -> Self {
        let hidden = |lent: &[PathBuf], all: &[&[PathBuf]]| -> Vec<PathBuf> {
            let branches: Vec<&Path> = all.iter().copied().flatten().map(PathBuf::as_path).collect();
            lent.iter().flat_map(|root| SandboxPolicy::roots_without_branches(root, &branches)).collect()
        };
        let mut read = hidden(&["/".into()], &[&policy.hidden, &policy.secret]);
        read.extend(hidden(&policy.readable, &[&policy.secret]));
        read.extend(policy.guarded.iter().filter(|path| !policy.is_hidden(path)).cloned());
        let mut write = hidden(&policy.writable, &[&policy.secret, &policy.guarded]);
        write.push(policy.temporary.clone());
        write.extend(DEVICES.map(PathBuf::from));
        Self { read, write, list: policy.listed.clone() }
    }
}

/// From now on, for this process and all that it starts. Returns the kernel's version; 0: it has none.
pub(super) fn restrict_with_landlock(lent: &Lent, network: Network) -> io::Result<u32> {
    enforce_ruleset(lent, network).map_err(io::Error::other)
}

fn enforce_ruleset(lent: &Lent, network: Network) -> Result<u32, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    let ruleset = match network {
        Network::Open => ruleset,
        Network::Closed => ruleset.handle_access(AccessNet::from_all(NEWEST))?,
    };
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(&lent.read, AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(&lent.list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(&lent.write, AccessFs::from_all(NEWEST)))?
        .restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            effective_abi as u32
        }
        LandlockStatus::Available { .. } | LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    })
}
