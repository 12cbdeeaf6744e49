//! The names in the index of a git repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A larger index is not read.
const MAX_INDEX: u64 = 128 << 20;

/// Before the number of an entry's content: times, device, user and so on.
const FACTS: usize = 40;

/// It is not as it should be, or of a kind that is not known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Every tracked name, relative to the work tree. A repository without an index has none.
pub(crate) fn indexed_names(folder: &Path, common: &Path) -> Result<BTreeSet<PathBuf>, Unreadable> {
    let file = folder.join("index");
    match fs::metadata(&file) {
        Ok(found) if found.len() <= MAX_INDEX => {}
        Ok(_) => return Err(Unreadable),
        Err(_) => return Ok(BTreeSet::new()),
    }
    let bytes = fs::read(&file).map_err(|_| Unreadable)?;
    parse_git_index(&bytes, git_index_hash_length(common)).ok_or(Unreadable)
}

/// Bytes of the number of an object.
fn git_index_hash_length(common: &Path) -> usize {
    let settings = fs::read(common.join("config")).unwrap_or_default();
    let settings = String::from_utf8_lossy(&settings).to_lowercase();
    if settings.contains("sha256") { 32 } else { 20 }
}

/// Versions 2 to 4, whole: one that is kept in two files says so at its end.
fn parse_git_index(bytes: &[u8], number: usize) -> Option<BTreeSet<PathBuf>> {
    let version = read_index_u32(bytes, 4)?;
    let count = read_index_u32(bytes, 8)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let (mut names, mut name, mut at) = (BTreeSet::new(), Vec::new(), 12);
    for _ in 0..count {
        let start = at;
        let flags = *bytes.get(at + FACTS + number)?;
        at += FACTS + number + 2 + if flags & 0x40 == 0 { 0 } else { 2 };
        let dropped = match version {
            4 => read_index_varint(bytes, &mut at)?,
            _ => name.len(),
        };
        name.truncate(name.len().checked_sub(dropped)?);
        let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&bytes[at..at + length]);
        at += length + 1;
        if version < 4 {
            // Filled up to a multiple of eight, with one byte at least.
            at = start + (at - 1 - start + 8) / 8 * 8;
        }
        names.insert(PathBuf::from(OsStr::from_bytes(&name)));
    }
    let split = bytes.get(at..)?.windows(4).any(|name| name == b"link");
    (!split).then_some(names)
}

fn read_index_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// As git writes how much of the name before it is dropped.
fn read_index_varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *bytes.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(words).current_dir(folder);
        let output = git.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Of every version, and with either kind of numbers, the names are those that git itself tells.
    #[test]
    fn the_names_are_those_that_git_tells() {
        for format in ["sha1", "sha256"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            git(root, &["init", "-q", &format!("--object-format={format}"), "."]);
            assert_eq!(indexed_names(&root.join(".git"), &root.join(".git")), Ok(BTreeSet::new()));
            let long = "deep/".repeat(60) + "file";
            for number in 0..40 {
                let name = format!("a/{}{number}", "x".repeat(number));
                for name in [name.as_str(), &long, ".gitattributes", "a/.env", "späße"] {
                    fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                    fs::write(root.join(name), name).unwrap();
                }
            }
            git(root, &["add", "-A"]);
            git(root, &["update-index", "--skip-worktree", "a/.env"]);
            for version in ["2", "3", "4"] {
                git(root, &["update-index", "--index-version", version]);
                let told = git(root, &["ls-files", "-z"]);
                let told = told.split_terminator('\0').map(PathBuf::from).collect();
                assert_eq!(indexed_names(&root.join(".git"), &root.join(".git")), Ok(told), "{format} {version}");
            }
            git(root, &["update-index", "--split-index"]);
            assert_eq!(indexed_names(&root.join(".git"), &root.join(".git")), Err(Unreadable), "one part of two");
        }
    }

    #[test]
    fn what_is_no_index_is_told_from_one() {
        assert_eq!(parse_git_index(b"", 20), None);
        assert_eq!(parse_git_index(b"DIRC\0\0\0\x02\0\0\0\x01", 20), None);
        assert_eq!(parse_git_index(b"DIRC\0\0\0\x09\0\0\0\0", 20), None);
        assert_eq!(parse_git_index(b"DIRC\0\0\0\x02\0\0\0\0", 20), Some(BTreeSet::new()));
    }
}
