//! The repository's own files.

use std::path::{Path, PathBuf};

use crate::scan;

/// One Rust file.
pub(crate) struct Source {
    /// Its path from the repository's root.
    pub(crate) name: String,
    /// All of it.
    pub(crate) text: String,
    /// Without comments and without what is in quotes, line by line the same.
    pub(crate) code: String,
    /// The same without the tests at its end.
    pub(crate) product: String,
}

/// Folders and files that are ours and are no Rust.
const OTHERS: [&str; 8] =
    [".ci", "scripts", "interop", "docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "justfile"];

/// Names of folders that somebody else fills.
const FOREIGN: [&str; 6] = ["target", "node_modules", ".venv", "__pycache__", ".git", ".hypothesis"];

pub(crate) fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the repository is there")
}

/// Folders with Rust of ours.
const RUST: [&str; 2] = ["crates", "xtask"];

/// Every Rust file of ours.
pub(crate) fn rust_sources() -> Vec<Source> {
    let rust = rust_files().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.filter_map(|path| Some(source(&path, std::fs::read_to_string(&path).ok()?))).collect()
}

/// Every text that is ours, by name.
pub(crate) fn texts() -> Vec<(String, String)> {
    let others = OTHERS.iter().flat_map(|name| files(&repository().join(name)));
    let all = rust_files().chain(others);
    all.filter_map(|path| Some((name(&path), std::fs::read_to_string(&path).ok()?))).collect()
}

fn rust_files() -> impl Iterator<Item = PathBuf> {
    RUST.iter().flat_map(|name| files(&repository().join(name)))
}

fn source(path: &Path, text: String) -> Source {
    let code = scan::code(&text);
    let product = match text.find("#[cfg(test)]") {
        Some(tests) => scan::code(&text[..tests]),
        None => code.clone(),
    };
    Source { name: name(path), text, code, product }
}

fn name(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

/// The file, or all files below the folder.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let ours = |path: &PathBuf| !FOREIGN.iter().any(|foreign| path.ends_with(foreign));
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(ours).flat_map(|path| files(&path)).collect();
    found.sort();
    found
}
