//! How much memory and how many processes a fenced command may have.

use serde::{Deserialize, Serialize};

/// How much a fenced command may have. Absent: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Bytes of memory that each of its processes may write.
    pub memory: Option<u64>,
    /// Processes and threads that it may have at once.
    pub processes: Option<u64>,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::unix::fs::MetadataExt as _;

    use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

    use super::Caps;
    use crate::sandbox::plan::{Around, Root};

    impl Caps {
        /// Puts this process and all that comes of it under them.
        ///
        /// Memory that is only reserved does not count: runtimes reserve far more than they ever write. Processes are
        /// counted for each user of a namespace, so where there is none of its own those of others are added.
        pub(in crate::sandbox) fn hold(self, around: Around, root: Root) -> io::Result<()> {
            if let Some(memory) = self.memory {
                lower(Resource::Data, memory)?;
            }
            let alone = around == Around::Bubblewrap || root == Root::Namespace;
            let others = if alone { 0 } else { tasks() };
            match self.processes {
                Some(processes) => lower(Resource::Nproc, processes.saturating_add(others)),
                None => Ok(()),
            }
        }
    }

    fn lower(resource: Resource, most: u64) -> io::Result<()> {
        let most = getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
        Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
    }

    /// Processes and threads of this user.
    fn tasks() -> u64 {
        let user = geteuid().as_raw();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let own = all.filter(|entry| entry.metadata().is_ok_and(|process| process.uid() == user));
        let threads = own.map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
        threads.sum::<usize>() as u64
    }
}
