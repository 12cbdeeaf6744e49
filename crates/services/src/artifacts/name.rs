//! What an artifact may be called: whatever is kept can be copied to any disk, and no two names look the same.

use icu_normalizer::ComposingNormalizerBorrowed;

/// A longer name is refused: no file can have it.
pub(super) const MAX_NAME_BYTES: usize = 255;

/// Belongs to the user, not to the session; the rest is the name.
const USER_PREFIX: &str = "user:";

/// Letters that stand for a slash, or look like one.
const SLASH_LOOKALIKES: [char; 9] =
    ['\\', '\u{2044}', '\u{2215}', '\u{2216}', '\u{29F5}', '\u{29F8}', '\u{29F9}', '\u{FF0F}', '\u{FF3C}'];

/// What Windows takes for a device, whatever its ending.
const DEVICE_NAMES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Why nothing can be called this; none if it can.
pub(super) fn artifact_name_flaw(name: &str) -> Option<&'static str> {
    let own = name.strip_prefix(USER_PREFIX).unwrap_or(name);
    if own.is_empty() || name.len() > MAX_NAME_BYTES {
        return Some("it has 1 to 255 bytes");
    }
    if name.chars().any(char::is_control) {
        return Some("it has no control characters");
    }
    if name.contains(SLASH_LOOKALIKES) {
        return Some("its folders are told apart by / alone, and no other letter looks like one");
    }
    if !ComposingNormalizerBorrowed::new_nfc().is_normalized(name) {
        return Some("its letters are composed (Unicode NFC)");
    }
    own.split('/').find_map(artifact_name_step_flaw)
}

fn artifact_name_step_flaw(step: &str) -> Option<&'static str> {
    let stem = step.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    match step {
        "" => Some("it has no empty folder, neither at its start nor at its end"),
        "." | ".." => Some("it leads nowhere else: no . and no .."),
        _ if step.ends_with(['.', ' ']) => Some("no dot and no blank ends it or a folder of it"),
        _ if is_device_file_name(&stem) => Some("Windows takes it for a device"),
        _ => None,
    }
}

fn is_device_file_name(stem: &str) -> bool {
    let port = |name: &str| {
        let mut rest = stem.strip_prefix(name).unwrap_or_default().chars();
        let numbered = matches!(rest.next(), Some('1'..='9' | '¹' | '²' | '³'));
        numbered && rest.next().is_none()
    };
    DEVICE_NAMES.contains(&stem) || port("com") || port("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_folders_are_names() {
        let long = "x".repeat(MAX_NAME_BYTES);
        let names =
            ["note.txt", "dir/pic.png", "user:shared.txt", "user:a/b", ".env", "a b", "caf\u{e9}", "..a", "a..b"];
        for name in names.into_iter().chain(["console", "com", "com10", "lpt0", "a:b", "nulls/x", long.as_str()]) {
            assert_eq!(artifact_name_flaw(name), None, "{name}");
        }
    }

    #[test]
    fn what_leads_elsewhere_or_looks_like_another_is_none() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let elsewhere = ["", "user:", ".", "..", "../x", "a/../b", "a/..", "/abs", "user:/abs", "a//b", "a/", "./a"];
        let hidden = ["a\0b", "a\nb", "a\u{7f}", "..\\x", "a\u{2215}b", "a\u{ff0f}b", "cafe\u{301}", long.as_str()];
        let devices = ["CON", "con.txt", "a/Nul", "aux.tar.gz", "COM1", "lpt9.log", "com\u{b9}", "user:PRN", "con .x"];
        let ends = ["a.", "a ", "a./b", "user:a."];
        for name in elsewhere.into_iter().chain(hidden).chain(devices).chain(ends) {
            assert!(artifact_name_flaw(name).is_some(), "{name:?}");
        }
    }
}
