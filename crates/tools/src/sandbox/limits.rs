//! How much memory and how many processes a fenced command may have.

use serde::{Deserialize, Serialize};

/// How much a fenced command may have. Absent: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Bytes of memory that each of its processes may write.
    pub memory: Option<u64>,
    /// Processes and threads that it may have at once.
    pub processes: Option<u64>,
}

/// Linux from this version on counts the processes of a user namespace apart from those of the machine.
const FIRST_APART: (u32, u32) = (5, 14);

/// True if a limit of processes holds for a command's namespace alone.
pub(super) fn sandbox_limit_counts_by_namespace() -> bool {
    sandbox_limit_counts_per_user_namespace(&rustix::system::uname().release().to_string_lossy())
}

/// A version that cannot be read is an old one: a command without a limit works, one that others use up does not.
fn sandbox_limit_counts_per_user_namespace(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next()?.ok();
    number().zip(number()).is_some_and(|version| version >= FIRST_APART)
}

#[cfg(test)]
mod tests {
    use super::sandbox_limit_counts_per_user_namespace;

    #[test]
    fn processes_are_counted_apart_from_5_14_on() {
        for release in ["5.14.0", "5.14", "6.1.0-13-amd64", "10.0.1"] {
            assert!(sandbox_limit_counts_per_user_namespace(release), "{release}");
        }
        for release in ["5.13.19", "5.4.0-150-generic", "4.18.0-553.el8.x86_64", "6", "", "new"] {
            assert!(!sandbox_limit_counts_per_user_namespace(release), "{release}");
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::unix::fs::MetadataExt as _;

    use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

    use super::{SandboxLimits, sandbox_limit_counts_by_namespace};
    use crate::sandbox::plan::{Around, Root};

    impl SandboxLimits {
        /// Puts this process and all that comes of it under them.
        ///
        /// Memory that is only reserved does not count: runtimes reserve far more than they ever write. Processes are
        /// counted for each user of a namespace, so where there is none of its own those of others are added. Where that
        /// would be needed behind bubblewrap, which hides the others, they are not held at all.
        pub(in crate::sandbox) fn apply_limits(self, around: Around, root: Root) -> io::Result<()> {
            if let Some(memory) = self.memory {
                lower_sandbox_limit(Resource::Data, memory)?;
            }
            let counts = sandbox_limit_counts_by_namespace();
            let alone = counts && (around == Around::Bubblewrap || root == Root::Namespace);
            match self.processes.filter(|_| counts || around == Around::Nothing) {
                Some(processes) if alone => lower_sandbox_limit(Resource::Nproc, processes),
                Some(processes) => lower_sandbox_limit(Resource::Nproc, processes.saturating_add(max_sandbox_tasks())),
                None => Ok(()),
            }
        }
    }

    fn lower_sandbox_limit(resource: Resource, most: u64) -> io::Result<()> {
        let most = getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
        Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
    }

    /// Processes and threads of this user.
    fn max_sandbox_tasks() -> u64 {
        let user = geteuid().as_raw();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let own = all.filter(|entry| entry.metadata().is_ok_and(|process| process.uid() == user));
        let threads = own.map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
        threads.sum::<usize>() as u64
    }
}
