//! The table of docs/security.md: every promise with the test that shows it, or what is missing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::source::repository;

const ROWS: &str = include_str!("security.tsv");
const BEGIN: &str = "<!-- promises: UPDATE=1 cargo test -p xtask writes it -->\n";
const END: &str = "<!-- end of promises -->";

/// A promise, what it says in short, the tests that show it, and what is missing or different.
struct PromiseRow {
    id: &'static str,
    promise: &'static str,
    tests: Vec<&'static str>,
    missing: &'static str,
}

fn rows() -> Vec<PromiseRow> {
    let lines = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &'static str| {
        let [id, promise, tests, missing] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        PromiseRow { id, promise, tests: tests.split_whitespace().collect(), missing }
    };
    lines.map(row).collect()
}

#[test]
fn every_promise_is_there_once_with_tests_that_exist_or_what_is_missing() {
    let ids: Vec<String> = (1..=40).map(|n| format!("S{n}")).chain((1..=19).map(|n| format!("P{n}"))).collect();
    assert_eq!(rows().iter().map(|row| row.id.to_owned()).collect::<Vec<_>>(), ids);
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for row in rows() {
        assert!(!row.tests.is_empty() || !row.missing.is_empty(), "{}: neither a test nor what is missing", row.id);
        for test in row.tests {
            let (file, name) = test.split_once("::").expect("a test is file::name");
            let text = files
                .entry(file)
                .or_insert_with(|| std::fs::read_to_string(repository().join(file)).unwrap_or_default());
            assert!(is_test(text, name), "{}: no such test: {test}", row.id);
        }
    }
}

#[test]
fn the_table_is_in_the_page() {
    let path = repository().join("docs/security.md");
    let found = std::fs::read_to_string(&path).expect("there is docs/security.md");
    let (before, rest) = found.split_once(BEGIN).expect("the page marks where the table begins");
    let (_, after) = rest.split_once(END).expect("the page marks where the table ends");
    let expected = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("UPDATE").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&path, expected).expect("the file can be written");
        return;
    }
    assert!(found == expected, "docs/security.md is stale: run UPDATE=1 cargo test -p xtask");
}

/// A function of this name with the attribute of a test before it. Laws are written by a macro: there the name is enough.
fn is_test(text: &str, name: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let is_property = text.contains("proptest!");
    is_property || before.lines().rev().take(6).any(|line| line.trim_start().starts_with("#[") && line.contains("test"))
}

fn table() -> String {
    let mut table = "| | promise | shown by | missing or different |\n|---|---|---|---|\n".to_owned();
    for PromiseRow { id, promise, tests, missing } in rows() {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{}`", short_name(test))).collect();
        writeln!(table, "| {id} | {promise} | {} | {missing} |", tests.join(" · ")).expect("a string takes everything");
    }
    table
}

/// Without the folders that every test has.
fn short_name(test: &str) -> String {
    test.trim_start_matches("crates/").replace("/tests/", "/").replace(".rs::", "::")
}
