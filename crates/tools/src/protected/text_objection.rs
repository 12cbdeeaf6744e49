//! Changes of one file's text that make other programs run something, although the file's name does not say so.
//!
//! Names are looked at by [`crate::permission::is_protected_path`]. Here are the two kinds of files that a name cannot tell:
//! those of which only a part counts, and those of a git repository in a folder of any name. What a command does to
//! either is found by comparing; a tool that writes one file asks here before it does.

use std::path::Path;

use super::open_folder::OpenFolder;
use super::relevant_part::RelevantPart;
use super::scan::{REPOSITORY_PARTS, runs_in_repository};
use crate::permission::{PathClass, classify_path_name, normalize_path_name};

/// True if only a part of the file counts: what its text was and will be decides.
pub(crate) fn text_has_relevant_part(path: &Path) -> bool {
    let name = |path: Option<&Path>| path.and_then(Path::file_name).unwrap_or_default().to_owned();
    classify_path_name(&name(path.parent()), &name(Some(path))) == PathClass::Scripted
}

/// True if a file there can be what is missing to a repository in a folder above it.
pub(crate) fn is_repository_text_part(path: &Path) -> bool {
    path.iter().any(|name| REPOSITORY_PARTS.iter().any(|part| name.eq_ignore_ascii_case(part)))
}

/// Why somebody must be asked before the file at this path, relative to the folder, gets a new text.
pub(crate) fn text_objection(folder: &Path, path: &Path, old: Option<&str>, new: &str) -> Option<String> {
    if text_has_relevant_part(path) && text_scripts_differ(path, old, new) {
        return Some(format!("it changes what other programs run: the scripts of {}", path.display()));
    }
    let folder = OpenFolder::open(folder).ok()?;
    let inside = path.ancestors().skip(1).find(|repository| text_touches_repository(&folder, repository, path));
    inside.map(|_| format!("it changes what git runs, or makes a repository: {}", path.display()))
}

/// True if the new text would run something that the old one does not, or no longer what it did.
fn text_scripts_differ(path: &Path, old: Option<&str>, new: &str) -> bool {
    let part = |text: &str| RelevantPart::Scripts.extract_from_text(path, text);
    old.map(part).unwrap_or_default() != part(new)
}

/// True if this folder is a repository or becomes one by the file, and the file is not just content.
fn text_touches_repository(folder: &OpenFolder, repository: &Path, path: &Path) -> bool {
    let Some(first) = path.strip_prefix(repository).ok().and_then(|inner| inner.iter().next()) else { return false };
    let first = normalize_path_name(first);
    let missing: Vec<&str> =
        REPOSITORY_PARTS.into_iter().filter(|name| !folder.contains(&repository.join(name))).collect();
    match missing.as_slice() {
        [] => runs_in_repository(&first),
        [only] => only.eq_ignore_ascii_case(&first),
        _ => false,
    }
}
