//! `docs/papers.md`: every row of the five systems that this server is compatible with, and the test that shows it.
//!
//! `rows.tsv` says which test shows which row. `UPDATE=1 cargo test --workspace --test server papers` writes the page.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ROWS: &str = include_str!("rows.tsv");

/// The name in the table, the title, and what the document describes.
const SYSTEMS: [(&str, &str, &str); 5] = [
    (
        "unified",
        "goose's unified server",
        "The architecture of a goosed branch that serves goose's REST, ACP-REST and ACP from one port.",
    ),
    ("vscode", "vscode-goose", "The ACP client of goose for VS Code, as its integration guide describes it."),
    ("aptove", "Aptove", "The ACP methods of the Aptove agent and its mobile apps."),
    ("adk2goose", "adk2goose", "A proxy that makes a goose server an ADK agent: `gander proxy adk`."),
    ("gopackage", "Go package acp", "The design of a Go package for ACP agents."),
];

struct PaperRow {
    system: &'static str,
    row: &'static str,
    tests: Vec<&'static str>,
    reason: &'static str,
}

#[test]
fn every_row_names_a_test_that_exists_or_a_reason() {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for PaperRow { system, row, tests, reason } in rows() {
        assert!(SYSTEMS.iter().any(|(known, ..)| *known == system), "no such system: {system}");
        assert!(!tests.is_empty() || !reason.is_empty(), "{row}: neither a test nor a reason");
        for test in tests {
            let (file, name) = test.split_once("::").unwrap();
            let path = root().join(file);
            let text = files.entry(path.clone()).or_insert_with(|| std::fs::read_to_string(&path).unwrap_or_default());
            assert!(is_test(text, name), "{row}: no such test: {test}");
        }
    }
}

#[test]
fn the_page_is_what_the_table_says() {
    let (path, page) = (root().join("docs/papers.md"), page());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == page, "docs/papers.md: write it with UPDATE=1");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rows() -> Vec<PaperRow> {
    let row = |line: &'static str| {
        let [system, row, tests, reason] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        PaperRow { system, row, tests: tests.split_whitespace().collect(), reason }
    };
    ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

/// A function of this name with the attribute of a test before it; in TypeScript a case of this name.
fn is_test(text: &str, name: &str) -> bool {
    if text.contains("from \"vitest\"") {
        return is_case(text, &name.replace('+', " "));
    }
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    before.lines().rev().take(4).any(|line| line.trim_start().starts_with("#[") && line.contains("test"))
}

/// `it("name"`, or the same after `it.each(…)`, `it.skipIf(…)` or `it.runIf(…)`.
fn is_case(text: &str, name: &str) -> bool {
    let of_many = |line: &str| ["it.each(", "it.skipIf(", "it.runIf("].iter().any(|word| line.starts_with(word));
    text.match_indices(&format!("(\"{name}\"")).any(|(at, _)| {
        let before = &text[..at];
        let begun = before.lines().rev().map(str::trim_start).find(|line| line.starts_with("it"));
        before.ends_with("it") || before.ends_with(')') && begun.is_some_and(of_many)
    })
}

#[test]
fn cases_of_a_table_are_found_and_other_words_are_not() {
    let text = "it(\"one\", f);\n  it.each([\n    [1, \"x\"],\n  ])(\"many %s\", f);\nit.skipIf(a)(\"some\", f);\nexpect(g(\"none\"));";
    let found = ["one", "many %s", "some", "none", "x"].map(|name| is_case(text, name));
    assert_eq!(found, [true, true, true, false, false]);
}

fn page() -> String {
    let mut page = "# The systems behind gander, row by row\n\n\
        This page is generated: `UPDATE=1 cargo test --workspace --test server papers`. gander grew from the documents of five systems.\n\
        Every row of them is here with the test that shows it, or with the reason why it differs. [Dialects](dialects.md) and\n\
        [differences](differences.md) tell more.\n\n| system | rows | shown by a test | otherwise |\n|---|---|---|---|\n"
        .to_owned();
    let rows = rows();
    for (system, title, _) in SYSTEMS {
        let of: Vec<&PaperRow> = rows.iter().filter(|row| row.system == system).collect();
        let shown = of.iter().filter(|row| !row.tests.is_empty()).count();
        writeln!(page, "| {title} | {} | {shown} | {} |", of.len(), of.len() - shown).unwrap();
    }
    for (system, title, about) in SYSTEMS {
        write!(
            page,
            "\n## {title}\n\n{about}\n\n| row | shown by | difference, or where else it is shown |\n|---|---|---|\n"
        )
        .unwrap();
        for row in rows.iter().filter(|row| row.system == system) {
            let tests: Vec<String> = row.tests.iter().map(|test| test_link(test)).collect();
            writeln!(page, "| {} | {} | {} |", row.row.replace('|', "\\|"), tests.join(", "), row.reason).unwrap();
        }
    }
    page
}

fn test_link(test: &str) -> String {
    let (file, name) = test.split_once("::").unwrap();
    format!("[`{}`](../{file})", name.replace('+', " "))
}
