//! What the command line of a program names: whoever wrote it down means the program to have it.

use std::path::{Path, PathBuf};

use super::paths::SandboxPaths;

/// What a command line names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedFiles {
    /// Folders that hold a named file, to be read.
    pub read: Vec<PathBuf>,
    /// Folders named themselves, to be written.
    pub write: Vec<PathBuf>,
}

impl NamedFiles {
    /// By these words, as far as they are whole paths of something that is there.
    pub(super) fn by(bounds: &SandboxPaths, words: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut named = Self::default();
        let paths = words.into_iter().filter(|word| word.is_absolute()).filter_map(|word| word.canonicalize().ok());
        for path in paths.filter(|path| path.parent().is_some()) {
            // Whole homes and whole trees of the system are nobody's argument.
            let root = bounds.hidden.iter().any(|hidden| hidden.starts_with(&path));
            match path.is_dir() {
                true if root => {}
                true => named.write.push(path),
                false => named.read.extend(holder(bounds, &path)),
            }
        }
        named
    }
}

/// The folder that a program in a hidden place needs around it: its project, but no more than the file's own
/// folder among the hidden names of a home.
fn holder(bounds: &SandboxPaths, file: &Path) -> Option<PathBuf> {
    let hidden =
        bounds.hidden.iter().filter(|hidden| file.starts_with(hidden)).max_by_key(|hidden| hidden.as_os_str().len())?;
    let depth = if hidden.as_path() == Path::new("/home") { 2 } else { 1 };
    let inner = file.strip_prefix(hidden).ok()?;
    let first: PathBuf = inner.components().take(depth).collect();
    let dotted = first.to_string_lossy().starts_with('.');
    let project = hidden.join(first);
    match (project.is_dir(), dotted) {
        (true, false) => Some(project),
        (true, true) => file.parent().map(Path::to_owned),
        (false, _) => Some(file.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_is_lent_its_project_and_the_folders_it_is_told() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        for folder in ["mcp/dist", ".hidden/bin", "docs"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["mcp/dist/index.js", ".hidden/bin/tool", "alone.py"] {
            std::fs::write(home.join(file), "").unwrap();
        }
        let bounds = SandboxPaths { hidden: vec![home.clone()], home: Some(home.clone()), ..SandboxPaths::default() };
        let words =
            ["mcp/dist/index.js", ".hidden/bin/tool", "alone.py", "docs", "none", ""].map(|word| home.join(word));
        let named = NamedFiles::by(&bounds, words.into_iter().chain(["--flag".into(), "/bin/sh".into()]));
        let read = [home.join("mcp"), home.join(".hidden/bin"), home.join("alone.py")];
        assert_eq!(named, NamedFiles { read: read.into(), write: vec![home.join("docs")] });
    }
}
