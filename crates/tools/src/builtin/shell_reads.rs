//! What the files of a workspace hold against a shell line that only reads by its letters.
//!
//! The letters of a line say what it names; where links lead, what patterns stand for and what a repository would run
//! only the files can tell. They are looked at when the line is decided about. Where they change before it runs, the
//! fence still holds: such a line can write nothing, and secret files below searched folders are out of its sight.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git_attributes;
use crate::Workspace;
use crate::files::secret_files::{is_git_settings, secret_files};
use crate::permission::{LineReads, NamedPath, RepositoryUse, WorkspaceFolders, find_reads, is_secret_path};

/// A pattern that stands for more is not looked through.
const MAX_MATCHES: usize = 4_096;

/// A folder with more entries, in which links are followed, is not looked through.
const MAX_FOLLOWED: usize = 4_096;

/// Settings of a repository longer than this are not looked through.
const MAX_SETTINGS: u64 = 256 << 10;

/// Why the line of this call must be asked about, although its letters only read.
pub(crate) fn shell_reads_objection(arguments: &Value, workspace: &Workspace) -> Option<String> {
    let folders = workspace.rule_folders();
    let line = arguments.get("command")?.as_str()?;
    let cwd = folders.root.join(arguments.get("cwd").and_then(Value::as_str).unwrap_or_default());
    let reads = find_reads(line, &cwd, &folders)?;
    let files = ShellReadFiles { folders: &folders };
    let named = || reads.paths.iter().find_map(|named| files.named_objection(named));
    let followed = || reads.followed.iter().find_map(|folder| files.folder_objection(folder, &mut 0));
    let settings = || files.settings_file_objection(&reads);
    let repository = || reads.repositories.iter().find_map(|used| files.repository_objection(used));
    files.secret_objection(&cwd).or_else(named).or_else(followed).or_else(repository).or_else(settings)
}

struct ShellReadFiles<'a> {
    folders: &'a WorkspaceFolders,
}

impl ShellReadFiles<'_> {
    fn named_objection(&self, named: &NamedPath) -> Option<String> {
        if !named.glob {
            return self.secret_objection(&named.path);
        }
        let mut matches = Vec::new();
        match expand_shell_glob(&named.path, &mut matches) {
            Ok(()) => matches.iter().find_map(|path| self.glob_objection(path)),
            Err(TooMany) => Some(format!("a pattern stands for more than {MAX_MATCHES} files")),
        }
    }

    fn glob_objection(&self, path: &Path) -> Option<String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name.starts_with('-') {
            true => Some(format!("a pattern stands for an option: {name}")),
            false => self.secret_objection(path),
        }
    }

    /// Where a path really leads. What does not exist can be read by nobody.
    fn secret_objection(&self, path: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        if !self.folders.contains(&real) {
            return Some(format!("it leads outside the workspace: {}", path.display()));
        }
        is_secret_path(self.folders.path_from_above(&real))
            .then(|| format!("it leads to a file that may hold secrets: {}", path.display()))
    }

    /// Settings of git that a search would show: git itself needs to see them, and all commands of a line see the same.
    fn settings_file_objection(&self, reads: &LineReads) -> Option<String> {
        let searched = if reads.repositories.is_empty() { &[] } else { reads.searched_hidden.as_slice() };
        match secret_files(searched, self.folders) {
            Ok(found) => found
                .iter()
                .any(|path| is_git_settings(path))
                .then(|| "it searches the settings of git beside a command of git".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Links below a folder that lead out, or to another folder: secret files there are not known.
    fn folder_objection(&self, folder: &Path, seen: &mut usize) -> Option<String> {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            *seen += 1;
            if *seen > MAX_FOLLOWED {
                return Some("it follows links in a large folder".to_owned());
            }
            let path = entry.path();
            let found = match entry.file_type() {
                Ok(kind) if kind.is_symlink() && path.is_dir() => {
                    Some(format!("it follows a link to a folder: {}", path.display()))
                }
                Ok(kind) if kind.is_symlink() => self.secret_objection(&path),
                Ok(kind) if kind.is_dir() => self.folder_objection(&path, seen),
                Ok(_) | Err(_) => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn repository_objection(&self, used: &RepositoryUse) -> Option<String> {
        let from = used.from.canonicalize().ok()?;
        if from.components().any(|name| name.as_os_str() == ".git") {
            return Some("git would run inside of a repository's own folder".to_owned());
        }
        let inside = from.ancestors().take_while(|folder| self.folders.contains(folder));
        let Some(git) = inside.map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok()) else {
            return used.needed.then(|| "there is no git repository in the workspace".to_owned());
        };
        let Some(folder) = self.git_folder(&git) else {
            return Some("the git repository lies outside the workspace".to_owned());
        };
        let shown = || {
            let worktree = git.parent().filter(|_| used.shows_content)?;
            git_attributes::attributes_objection(worktree, &folder, &shell_git_common_folder(&folder))
        };
        shell_git_settings_objection(&folder).or_else(shown)
    }

    /// Where the repository is. One outside must know this folder as one of its worktrees, or anybody's could be read.
    fn git_folder(&self, git: &Path) -> Option<PathBuf> {
        let real = git.canonicalize().ok()?;
        if real.is_dir() {
            return Some(real).filter(|real| self.folders.contains(real));
        }
        let named = fs::read_to_string(&real).ok()?;
        let named = named.strip_prefix("gitdir:")?.trim();
        let folder = real.parent()?.join(named).canonicalize().ok()?;
        let registered = || {
            let back = fs::read_to_string(folder.join("gitdir")).ok()?;
            Path::new(back.trim()).canonicalize().ok().filter(|back| *back == real)
        };
        (self.folders.contains(&folder) || registered().is_some()).then_some(folder)
    }
}

/// Settings that name programs which no variable of git switches off, or files elsewhere.
fn shell_git_settings_objection(folder: &Path) -> Option<String> {
    let folders = [folder.to_owned(), shell_git_common_folder(folder)];
    let files = folders.into_iter().flat_map(|folder| [folder.join("config"), folder.join("config.worktree")]);
    for file in files {
        let Ok(found) = fs::metadata(&file) else { continue };
        let text = (found.len() <= MAX_SETTINGS).then(|| fs::read(&file).ok()).flatten();
        let Some(text) = text else { return Some("the settings of the git repository cannot be read".to_owned()) };
        if let Some(name) = risky_shell_git_setting(&String::from_utf8_lossy(&text)) {
            return Some(format!("the git repository may run programs: its settings hold {name}"));
        }
    }
    None
}

/// What the work trees of a repository have in common.
fn shell_git_common_folder(folder: &Path) -> PathBuf {
    let named = fs::read_to_string(folder.join("commondir")).ok();
    named.map_or_else(|| folder.to_owned(), |named| folder.join(named.trim()))
}

/// By letters: blanks do not count, and what merely looks like such a setting asks too.
fn risky_shell_git_setting(settings: &str) -> Option<&'static str> {
    let bare: String = settings.chars().filter(|c| *c == '\n' || !c.is_whitespace()).collect();
    let bare = format!("\n{}", bare.to_lowercase());
    let key = |name: &str| [format!("\n{name}="), format!("]{name}=")].iter().any(|key| bare.contains(key));
    let sections =
        [("[filter", "filter"), ("[include", "include"), ("[lfs\"extension", "lfs.extension"), ("[attr]", "attr.tree")];
    let section = sections.into_iter().find(|(text, _)| bare.contains(text)).map(|(_, name)| name);
    section.or_else(|| ["textconv", "command", "process", "worktree"].into_iter().find(|name| key(name)))
}

struct TooMany;

/// What a pattern stands for now.
fn expand_shell_glob(pattern: &Path, found: &mut Vec<PathBuf>) -> Result<(), TooMany> {
    let mut paths = vec![PathBuf::new()];
    for name in pattern.components() {
        let name = name.as_os_str();
        let text = name.to_string_lossy();
        if !text.contains(['*', '?']) {
            paths.iter_mut().for_each(|path| path.push(name));
            continue;
        }
        let mut next = Vec::new();
        for entry in paths.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A name that begins with a dot is stood for by no pattern that does not.
            if shell_glob_fits(&text, &name) && text.starts_with('.') == name.starts_with('.') {
                next.push(entry.path());
            }
            if next.len() > MAX_MATCHES {
                return Err(TooMany);
            }
        }
        paths = next;
    }
    found.extend(paths);
    Ok(())
}

/// True if the whole name fits: `*` stands for anything, `?` for one character.
fn shell_glob_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for mark in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match mark {
                '*' => reached[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && reached[at - 1],
                other => at > 0 && reached[at - 1] && name[at - 1] == other,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_names() {
        let cases = [("*.md", "a.md", true), ("*.md", "a.mdx", false), ("a?c*", "abcd", true), ("?", "", false)];
        assert_eq!(
            cases.map(|(pattern, name, _)| shell_glob_fits(pattern, name)),
            cases.map(|(_, _, fitting)| fitting)
        );
    }

    #[test]
    fn settings_that_name_programs_are_found_in_every_spelling() {
        let risky = [
            "[filter \"x\"]\n\tclean = ./x",
            "[ FILTER.x ] clean=./x",
            "[diff \"x\"] textconv = ./x",
            "[diff \"x\"]\n\tcommand\t= ./x",
            "[include]\n\tpath = ../x",
            "[includeIf \"gitdir:/\"]\npath=x",
            "[core]\r\n\tworktree = /",
            "[lfs \"extension.x\"]\n\tclean = ./x",
            "[attr]\n\ttree = HEAD",
        ];
        let usual = ["[core]\n\tbare = false\n\tsshCommand = ssh -i x\n[extensions]\n\tworktreeConfig = true", ""];
        assert!(risky.iter().all(|text| risky_shell_git_setting(text).is_some()));
        assert!(usual.iter().all(|text| risky_shell_git_setting(text).is_none()));
    }
}
