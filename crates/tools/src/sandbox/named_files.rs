//! What the command line of a program names: whoever wrote it down means the program to have it.

use std::path::{Path, PathBuf};

use super::paths::SandboxPaths;

/// Links from one to the next that are followed.
const MAX_LINKS: usize = 8;

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
    pub(super) fn from_command_words(bounds: &SandboxPaths, words: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut named = Self::default();
        let paths = words.into_iter().filter(|word| word.is_absolute());
        let paths = paths.filter_map(|word| Some((word.canonicalize().ok()?, word)));
        for (path, word) in paths.filter(|(path, _)| path.parent().is_some()) {
            // Whole homes and whole trees of the system are nobody's argument.
            let root = bounds.hidden.iter().any(|hidden| hidden.starts_with(&path));
            match path.is_dir() {
                true if root => {}
                true => named.write.push(path),
                false => {
                    let names = named_files_on_the_way(word);
                    let holders =
                        names.iter().chain([&path]).filter_map(|file| folder_holding_named_file(bounds, file));
                    let new: Vec<PathBuf> = holders.filter(|holder| !named.read.contains(holder)).collect();
                    named.read.extend(new);
                }
            }
        }
        named.read.dedup();
        named
    }
}

/// The file by its own name, and by each that its links lead to: a program of a virtual environment is a link to one of
/// the system, and finds its libraries by the name that it was started by.
fn named_files_on_the_way(word: PathBuf) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = Vec::new();
    let mut next = Some(word);
    while let Some(file) = next.take().filter(|_| names.len() < MAX_LINKS) {
        let (Some(folder), Some(name)) =
            (file.parent().and_then(|folder| folder.canonicalize().ok()), file.file_name())
        else {
            break;
        };
        let file = folder.join(name);
        next = std::fs::read_link(&file).ok().map(|target| folder.join(target));
        names.push(file);
    }
    names
}

/// The folder that a program in a hidden place needs around it: its project, but no more than the file's own
/// folder among the hidden names of a home.
fn folder_holding_named_file(bounds: &SandboxPaths, file: &Path) -> Option<PathBuf> {
    let hidden =
        bounds.hidden.iter().filter(|hidden| file.starts_with(hidden)).max_by_key(|hidden| hidden.as_os_str().len())?;
    let depth = if hidden.as_path() == Path::new("/home") { 2 } else { 1 };
    let inner = file.strip_prefix(hidden).ok()?;
    let first: PathBuf = inner.components().take(depth).collect();
    let dotted = first.to_string_lossy().starts_with('.');
    let project = hidden.join(first);
    match (project.is_dir(), dotted) {
        (true, false) => Some(project),
        (true, true) => named_virtual_environment(file).or(file.parent()).map(Path::to_owned),
        (false, _) => Some(file.to_owned()),
    }
}

/// The virtual environment whose program this is: without its settings and libraries python does not find its packages.
fn named_virtual_environment(file: &Path) -> Option<&Path> {
    let folder = file.parent()?.parent()?;
    folder.join("pyvenv.cfg").exists().then_some(folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_is_lent_its_project_and_the_folders_it_is_told() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        for folder in ["mcp/dist", ".hidden/bin", "docs", ".envs/x/bin"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["mcp/dist/index.js", ".hidden/bin/tool", "alone.py", ".envs/x/bin/python", ".envs/x/pyvenv.cfg"] {
            std::fs::write(home.join(file), "").unwrap();
        }
        let bounds = SandboxPaths { hidden: vec![home.clone()], home: Some(home.clone()), ..SandboxPaths::default() };
        let words = ["mcp/dist/index.js", ".hidden/bin/tool", "alone.py", ".envs/x/bin/python", "docs", "none", ""]
            .map(|word| home.join(word));
        let named =
            NamedFiles::from_command_words(&bounds, words.into_iter().chain(["--flag".into(), "/bin/sh".into()]));
        let read = [home.join("mcp"), home.join(".hidden/bin"), home.join("alone.py"), home.join(".envs/x")];
        assert_eq!(named, NamedFiles { read: read.into(), write: vec![home.join("docs")] });
    }

    #[test]
    fn a_program_behind_links_is_lent_the_projects_of_all_of_them() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        for folder in ["app/.venv/bin", "pythons/3/bin"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, home.join(at)).unwrap();
        link(Path::new("python3"), "app/.venv/bin/python");
        link(&home.join("pythons/3/bin/python3"), "app/.venv/bin/python3");
        link(Path::new("/bin/sh"), "pythons/3/bin/python3");
        link(Path::new("round"), "app/round");
        let bounds = SandboxPaths { hidden: vec![home.clone()], home: Some(home.clone()), ..SandboxPaths::default() };
        let named =
            NamedFiles::from_command_words(&bounds, ["app/.venv/bin/python", "app/round"].map(|word| home.join(word)));
        assert_eq!(named, NamedFiles { read: vec![home.join("app"), home.join("pythons")], write: vec![] });
    }
}
