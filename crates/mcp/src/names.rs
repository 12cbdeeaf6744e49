//! Names of tools as models take them: `<server>__<tool>`, of a small alphabet, short, and never the same twice.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// Providers take 64 characters of `[A-Za-z0-9_-]`.
const MAX_NAME_CHARS: usize = 64;

/// How much of that a server's own name may use.
const MAX_SERVER_CHARS: usize = 24;

/// A server's name as it stands before its tools: without `__`, so that a name has one reading.
pub(super) fn server_name(name: &str) -> String {
    let mut clean = String::new();
    for character in name.chars().map(sanitized_name_char) {
        if !(character == '_' && clean.ends_with('_')) {
            clean.push(character);
        }
    }
    let clean = clean.trim_matches('_');
    let short: String = clean.chars().take(MAX_SERVER_CHARS).collect();
    if short.is_empty() { "server".to_owned() } else { short.trim_end_matches('_').to_owned() }
}

/// Names for all servers of a session, in order. The second of the same name gets a number.
pub(super) fn unique_server_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in names {
        let base = server_name(name);
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        taken.extend(free);
    }
    taken
}

/// Names for all tools of a server, in order; they do not depend on that order.
pub(super) fn unique_tool_names<'a>(server: &str, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let tools: Vec<&str> = tools.into_iter().collect();
    let plain: Vec<String> = tools.iter().map(|tool| format!("{server}__{}", sanitized_server_name(tool))).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    plain.iter().for_each(|name| *count.entry(name).or_default() += 1);
    let fits = |tool: &str, name: &str| {
        name.len() <= MAX_NAME_CHARS && (count[name] == 1 || name.ends_with(&format!("__{tool}")))
    };
    tools
        .iter()
        .zip(&plain)
        .map(|(tool, name)| if fits(tool, name) { name.clone() } else { hashed_tool_name(tool, name) })
        .collect()
}

/// A name that is too long or not the only one carries a piece of its hash.
fn hashed_tool_name(tool: &str, name: &str) -> String {
    let hash: String = Sha256::digest(tool.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(MAX_NAME_CHARS - hash.len() - 1).collect();
    format!("{kept}_{hash}")
}

fn sanitized_server_name(name: &str) -> String {
    name.chars().map(sanitized_name_char).collect()
}

fn sanitized_name_char(character: char) -> char {
    if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay() {
        assert_eq!(unique_tool_names("git", ["status", "get-log"]), ["git__status", "git__get-log"]);
    }

    #[test]
    fn equal_names_are_told_apart_whatever_their_order() {
        let forth = unique_tool_names("s", ["a.b", "a_b", "a/b", "c.d"]);
        assert_eq!(forth, ["s__a_b_2e7336dc", "s__a_b", "s__a_b_c14cddc0", "s__c_d"]);
        let mut back = unique_tool_names("s", ["c.d", "a/b", "a_b", "a.b"]);
        back.reverse();
        assert_eq!(back, forth);
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "x".repeat(80);
        let names = unique_tool_names("server", [format!("{long}1").as_str(), format!("{long}2").as_str()]);
        assert!(names.iter().all(|name| name.len() == MAX_NAME_CHARS));
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn a_server_s_name_has_one_reading() {
        assert_eq!(
            unique_server_names(["My Files!", "my__files", "", "…", "a", "a"]),
            ["My_Files", "my_files", "server", "server_2", "a", "a_2"]
        );
        assert_eq!(server_name(&"y".repeat(90)).len(), MAX_SERVER_CHARS);
    }
}
