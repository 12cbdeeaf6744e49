//! Attributes of a git repository that make git show the content of secret files.
//!
//! Lines of git that run unasked get a file of attributes by which secret files are binary, so their content is not
//! shown. But a repository's own attributes go before that file: `.env diff` shows it all the same. Whether such a line
//! could be about a secret file its pattern hardly tells (`*`, `[.]*`, macros, letters of either case), so every pattern
//! counts but those for one kind of source files; of these it is looked whether the repository holds a secret file that
//! ends so. What only older commits hold is not looked through: there a secret by the name of its folder alone, such as
//! `.ssh/x.py`, could be shown where `*.py` has a way to be compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::git_index::{self, Unreadable};
use crate::permission::is_secret_path;

const ATTRIBUTES: &str = ".gitattributes";

/// Attributes longer than this are not looked through.
const MAX_ATTRIBUTES: u64 = 1 << 20;

/// Endings of files for which a repository may say how they are compared. None of them makes a file a secret one.
#[rustfmt::skip]
const SOURCES: [&str; 81] = [
    "ada", "adb", "ads", "bas", "bash", "bat", "bib", "c", "cc", "cls", "cmd", "cpp", "cs", "cshtml", "css", "csv",
    "csx", "cxx", "dart", "doc", "docx", "dot", "dtsi", "ex", "exs", "f90", "fish", "fountain", "fs", "gif", "go", "h",
    "hpp", "hs", "html", "htm", "hxx", "ico", "inc", "ipynb", "java", "jpeg", "jpg", "js", "jsx", "kt", "kts", "less",
    "lua", "m", "md", "mdx", "mm", "odt", "pas", "pdf", "php", "pl", "pm", "png", "proto", "ps1", "psm1", "py", "pyi",
    "r", "rb", "rs", "rst", "rtf", "sass", "scala", "scm", "scss", "sh", "sql", "svg", "swift", "tex", "ts", "tsx",
];

/// Why git could show secret files of this repository: its work tree, its folder, and the folder that it shares with
/// others.
pub(crate) fn attributes_objection(worktree: &Path, folder: &Path, common: &Path) -> Option<String> {
    let names = match git_index::indexed_names(folder, common) {
        Ok(names) => names,
        Err(Unreadable) => return Some("the index of the git repository cannot be read".to_owned()),
    };
    let mut texts = Vec::new();
    for file in [folder, common].map(|folder| folder.join("info/attributes")) {
        texts.extend(read_optional_attributes(&file).transpose());
    }
    for directory in tracked_directories(&names) {
        let file = worktree.join(&directory).join(ATTRIBUTES);
        let found = read_optional_attributes(&file).transpose();
        // Where the file is missing, or a link, git takes what its index holds.
        if found.is_none() && names.contains(&directory.join(ATTRIBUTES)) {
            return Some(format!("attributes of the git repository are not in its folder: {}", file.display()));
        }
        texts.extend(found);
    }
    let texts = texts.into_iter().collect::<Result<Vec<String>, Unreadable>>();
    let Ok(texts) = texts else { return Some("attributes of the git repository cannot be read".to_owned()) };
    let endings = match compared_attributes(&texts) {
        Ok(endings) => endings,
        Err(line) => return Some(format!("attributes of the git repository may show secret files: {line}")),
    };
    let shown = names.iter().find(|name| {
        is_secret_path(name) && attributed_file_extension(name).is_some_and(|found| endings.contains(&found))
    });
    shown.map(|name| format!("attributes of the git repository show a secret file: {}", name.display()))
}

/// Every folder in which something is tracked.
fn tracked_directories(names: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let above = names.iter().flat_map(|name| name.ancestors().skip(1).map(Path::to_owned));
    above.chain([PathBuf::new()]).collect()
}

/// The text of a file of attributes, if it is there and no link.
fn read_optional_attributes(file: &Path) -> Result<Option<String>, Unreadable> {
    match fs::symlink_metadata(file) {
        Ok(found) if found.is_symlink() => Ok(None),
        Ok(found) if found.len() > MAX_ATTRIBUTES => Err(Unreadable),
        Ok(_) => fs::read(file).map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned())).map_err(|_| Unreadable),
        Err(_) => Ok(None),
    }
}

/// The endings of source files that have a way to be compared; or a line that could be about any file.
fn compared_attributes(texts: &[String]) -> Result<BTreeSet<String>, String> {
    let mut words = vec!["diff".to_owned()];
    // A macro may stand for another one that comes later.
    loop {
        let macros = texts.iter().flat_map(|text| attribute_lines(text)).filter_map(|line| line.strip_prefix("[attr]"));
        let named = macros.filter_map(|rest| rest.split_once(char::is_whitespace));
        let new: Vec<String> = named
            .filter(|(name, rest)| !words.iter().any(|word| word == name) && sets_attribute(rest, &words))
            .map(|(name, _)| name.to_owned())
            .collect();
        if new.is_empty() {
            break;
        }
        words.extend(new);
    }
    let mut endings = BTreeSet::new();
    for line in texts.iter().flat_map(|text| attribute_lines(text)).filter(|line| !line.starts_with("[attr]")) {
        let (pattern, attributes) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        // A pattern in quotes may hold blanks: then everything behind its first one is looked at.
        if sets_attribute(attributes, &words) {
            endings.insert(source_ending(pattern).ok_or_else(|| line.to_owned())?);
        }
    }
    Ok(endings)
}

fn attribute_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// True if one of these attributes is set, gets a value or is forgotten, rather than switched off.
fn sets_attribute(attributes: &str, words: &[String]) -> bool {
    attributes.split_whitespace().filter(|attribute| !attribute.starts_with('-')).any(|attribute| {
        let name = attribute.trim_start_matches('!').split('=').next().unwrap_or_default();
        words.iter().any(|word| word == name)
    })
}

/// The ending of the files that a pattern such as `*.rs` or `src/**/*.rs` is about.
fn source_ending(pattern: &str) -> Option<String> {
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    let ending = last.strip_prefix("*.")?.to_lowercase();
    (!pattern.starts_with('"') && SOURCES.contains(&ending.as_str())).then_some(ending)
}

fn attributed_file_extension(name: &Path) -> Option<String> {
    name.extension().map(|ending| ending.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_ending_of_a_source_file_makes_a_secret() {
        let secret: Vec<_> =
            SOURCES.into_iter().filter(|ending| is_secret_path(Path::new(&format!("x.{ending}")))).collect();
        assert_eq!(secret, Vec::<&str>::new());
    }

    #[test]
    fn what_could_show_any_file_is_told_from_what_is_about_sources() {
        let about = |text: &str| compared_attributes(&[text.to_owned()]);
        for usual in [
            "",
            "# .env diff\n* text=auto\n*.sh eol=lf\n",
            ".env -diff\n*.lock -diff linguist-generated\n*.png binary\n",
            "*.pem binary",
            "vendor/** -diff",
        ] {
            assert_eq!(about(usual), Ok(BTreeSet::new()), "{usual}");
        }
        let sources = about("*.rs diff=rust\nsrc/**/*.PY diff=python\n*.md text diff=markdown").unwrap();
        assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["md", "py", "rs"]);
        for risky in [
            ".env diff",
            "* diff",
            "*.env !diff",
            "\t.env\tdiff=x",
            "\u{feff}.env diff",
            "\".env\" diff",
            "\"a b\" diff",
            "\\.env diff",
            ".e[n]v text diff",
            "*.{rs} diff",
            "*.rs* diff",
            ".*.rs diff",
            "config/** diff",
            "[attr]x diff\n.env x",
            "[attr]x y\n[attr]y diff\n.env x",
            "[attr]binary diff\n.env binary",
            "[attr]x !diff\n.env x",
            "*.pem diff=x",
            "* -text diff",
        ] {
            assert!(about(risky).is_err(), "{risky}");
        }
    }
}
