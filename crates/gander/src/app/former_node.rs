//! Which node the server of this data directory was before it was started again.
//!
//! Others wait for the end of a dead node's lease, because they cannot know that it is dead. Whoever gets the lock of its data
//! directory knows: what that node ran can go on at once.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use gander_services::paths::{DirectoryLock, Paths, write_private_file};
use gander_store::NodeId;

/// Held as long as this process is the node of its data directory.
pub(super) struct NodeLock {
    /// The node before this one, if it ran here since the machine was started.
    pub(super) former: Option<NodeId>,
    _lock: DirectoryLock,
}

impl NodeLock {
    /// Notes who the node is now. None if another process serves from this data directory.
    pub(super) fn take(paths: &Paths, node: NodeId) -> io::Result<Option<Self>> {
        let Some(lock) = DirectoryLock::try_take(&paths.node_lock())? else { return Ok(None) };
        let (note, place) = (paths.node_note(), describe_place(paths)?);
        let former = std::fs::read_to_string(&note).unwrap_or_default();
        let former = former.split_once(' ').filter(|(_, noted)| *noted == place && !place.is_empty());
        let former = former.and_then(|(node, _)| node.parse().ok()).map(NodeId);
        write_private_file(&note, format!("{} {place}", node.0).as_bytes())?;
        Ok(Some(Self { former, _lock: lock }))
    }
}

/// This folder of this machine since its start: a copy of the data directory, also in a copied machine, is another place. Empty
/// if that cannot be told.
fn describe_place(paths: &Paths) -> io::Result<String> {
    let folder = std::fs::metadata(paths.data_directory())?;
    let started = std::fs::read_to_string(PathBuf::from("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    Ok(if started.is_empty() { String::new() } else { format!("{} {} {}", started.trim(), folder.dev(), folder.ino()) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_domain::IdGenerator as _;
    use gander_store::clock::SystemIds;

    use super::*;

    #[test]
    fn a_node_is_known_again_in_its_own_folder_alone() {
        let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [paths, copied] = [&folder, &copy].map(|folder| Paths::new(folder.path().to_owned(), None));
        let [first, second, third] = std::array::from_fn(|_| NodeId(SystemIds.next_id()));
        let lock = NodeLock::take(&paths, first).unwrap().unwrap();
        assert_eq!(lock.former, None);
        assert!(NodeLock::take(&paths, second).unwrap().is_none(), "it still runs");
        drop(lock);
        std::fs::copy(paths.node_note(), copied.node_note()).unwrap();
        assert_eq!(NodeLock::take(&paths, second).unwrap().unwrap().former, Some(first));
        assert_eq!(NodeLock::take(&paths, third).unwrap().unwrap().former, Some(second));
        assert_eq!(NodeLock::take(&copied, third).unwrap().unwrap().former, None, "a copy is another place");
    }
}
