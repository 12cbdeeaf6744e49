//! Completes the beginning of a path below a workspace, for people who type one.

use std::ops::ControlFlow;

use super::walk::{Walk, WalkedEntry, WalkedKind};
use crate::Workspace;

/// So many files are looked at: whoever types more gets there.
const MAX_VISITED: usize = 20_000;

/// Paths of files and folders (with a slash at the end) whose path holds these letters, the best first.
///
/// What git ignores, what is hidden and what may not be read is left out, as for the agent's own list.
pub fn complete_paths(workspace: &Workspace, query: &str, limit: usize) -> Vec<String> {
    let wanted = query.trim_start_matches("./").to_lowercase();
    let (mut found, mut visited): (Vec<(u8, usize, String)>, usize) = (Vec::new(), 0);
    let Ok(root) = workspace.locate_path(".") else { return Vec::new() };
    let depth = if wanted.is_empty() { 1 } else { usize::MAX };
    let mut visitor = |WalkedEntry { located, kind }: WalkedEntry| {
        visited += 1;
        let end = if kind == WalkedKind::Folder { "/" } else { "" };
        let path = format!("{}{end}", located.relative_path().display());
        if let Some(rank) = rank_path(&path, &wanted) {
            found.push((rank, path.len(), path));
        }
        if visited < MAX_VISITED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // A folder that cannot be read completes nothing.
    if (Walk { workspace, depth, hidden: false }).visit(&root, &mut visitor).is_err() {
        return Vec::new();
    }
    found.sort();
    found.into_iter().take(limit).map(|(_, _, path)| path).collect()
}

/// How well a path fits, the less the better: it begins so, its name begins so, it holds the letters.
fn rank_path(path: &str, wanted: &str) -> Option<u8> {
    let path = path.to_lowercase();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if path.starts_with(wanted) {
        Some(0)
    } else if name.starts_with(wanted) {
        Some(1)
    } else {
        path.contains(wanted).then_some(2)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{FileAccess, Redactor};

    fn completed(query: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/deep/domain.rs", "main.md", "target/main.o", ".hidden/main"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
        let workspace = FileAccess::new(Redactor::default()).open(folder.path(), &[]).unwrap();
        complete_paths(&workspace, query, 3)
    }

    #[test]
    fn nothing_typed_names_the_first_level() {
        assert_eq!(completed(""), ["src/", "main.md"]);
    }

    #[test]
    fn the_beginning_comes_before_the_middle_and_ignored_files_never() {
        assert_eq!(completed("main"), ["main.md", "src/main.rs", "src/deep/domain.rs"]);
    }

    #[test]
    fn a_folder_is_gone_into() {
        assert_eq!(completed("./src/d"), ["src/deep/", "src/deep/domain.rs"]);
    }
}
