//! The table of all protocols, from what the tests wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::{Record, Said};

const HEAD: &str = "# Conformance

What each protocol consists of, and which test shows that it works, or that it is refused honestly. Written by
`scripts/conformance` from a full run of the tests; nothing here is typed by hand.
";

/// Every item of every protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    protocols: BTreeMap<String, Groups>,
}

type Groups = BTreeMap<String, BTreeMap<String, Item>>;

/// What is known of one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Item {
    listed: bool,
    ways: BTreeSet<String>,
    tests: BTreeSet<String>,
    reasons: BTreeSet<String>,
}

/// What can be said of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A test shows that it works.
    Yes,
    /// A test shows that it is refused.
    Refused,
    /// No test shows anything.
    Unshown,
    /// One test shows that it works, another that it is refused.
    Disputed,
}

impl Table {
    /// What the files of this folder say.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut table = Self::default();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            for line in fs::read_to_string(&path)?.lines() {
                table.add(serde_json::from_str(line).with_context(|| format!("{}: {line}", path.display()))?);
            }
        }
        Ok(table)
    }

    /// Takes in one record.
    pub fn add(&mut self, record: Record) {
        let Record { protocol, group, item, said, test } = record;
        let item = self.protocols.entry(protocol).or_default().entry(group).or_default().entry(item).or_default();
        match said {
            Said::Listed => item.listed = true,
            Said::Shown(how) => {
                item.ways.insert(how);
                item.tests.insert(test);
            }
            Said::Refused(reason) => {
                item.reasons.insert(reason);
                item.tests.insert(test);
            }
        }
    }

    /// What is wrong: items that nobody shows, or about which tests disagree.
    pub fn faults(&self) -> Vec<String> {
        let rows = self.rows().into_iter();
        let faults = rows.filter_map(|(protocol, group, name, item)| match item.verdict() {
            Verdict::Yes | Verdict::Refused => None,
            Verdict::Unshown => Some(format!("{protocol} {group} {name}: no test shows it")),
            Verdict::Disputed => Some(format!("{protocol} {group} {name}: shown and refused: {:?}", item.tests)),
        });
        faults.collect()
    }

    /// As Markdown, made from this commit.
    pub fn markdown(&self, commit: &str) -> String {
        let mut text = format!("{HEAD}\nLast full run: commit {commit}.\n");
        let (mut protocol, mut group) = ("", "");
        for (of, kind, name, item) in self.rows() {
            if of != protocol {
                text.push_str(&format!("\n## {of}\n"));
                (protocol, group) = (of, "");
            }
            if kind != group {
                text.push_str(&format!("\n| {kind} | | seen | test |\n|---|---|---|---|\n"));
                group = kind;
            }
            text.push_str(&item.row(name));
        }
        text
    }

    /// Items and verdicts alone, for comparing a run with a written table.
    pub fn verdicts(markdown: &str) -> Vec<String> {
        let rows = markdown.lines().filter(|line| line.starts_with('|') || line.starts_with("## "));
        rows.map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect()
    }

    fn rows(&self) -> Vec<(&str, &str, &str, &Item)> {
        let mut rows = Vec::new();
        for (protocol, groups) in &self.protocols {
            for (group, items) in groups {
                let listed = items.iter().filter(|(_, item)| item.listed);
                rows.extend(listed.map(|(name, item)| (protocol.as_str(), group.as_str(), name.as_str(), item)));
            }
        }
        rows
    }
}

impl Item {
    fn verdict(&self) -> Verdict {
        match (self.ways.is_empty(), self.reasons.is_empty()) {
            (true, true) => Verdict::Unshown,
            (false, true) => Verdict::Yes,
            (true, false) => Verdict::Refused,
            (false, false) => Verdict::Disputed,
        }
    }

    fn row(&self, name: &str) -> String {
        let joined = |words: &BTreeSet<String>| words.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (verdict, how) = match self.verdict() {
            Verdict::Yes => ("yes", joined(&self.ways)),
            Verdict::Refused => ("refused", joined(&self.reasons)),
            Verdict::Unshown => ("not shown", String::new()),
            Verdict::Disputed => ("disputed", joined(&self.reasons)),
        };
        let test = self.tests.first().map(|test| format!("`{test}`")).unwrap_or_default();
        format!("| `{name}` | {verdict} | {how} | {test} |\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(item: &str, said: Said) -> Record {
        let of = |text: &str| text.to_owned();
        Record { protocol: of("p"), group: of("method"), item: of(item), said, test: of("t::one") }
    }

    #[test]
    fn every_listed_item_has_a_row_and_what_nobody_shows_is_a_fault() {
        let mut table = Table::default();
        for item in ["a", "b", "c", "d"] {
            table.add(record(item, Said::Listed));
        }
        table.add(record("a", Said::Shown("stdio".to_owned())));
        table.add(record("b", Said::Refused("no need".to_owned())));
        table.add(record("d", Said::Shown("stdio".to_owned())));
        table.add(record("d", Said::Refused("no need".to_owned())));
        table.add(record("of another protocol", Said::Shown("stdio".to_owned())));
        let text = table.markdown("abc");
        let rows =
            ["## p", "| method | | seen", "|---|---|---|---|", "| `a` | yes", "| `b` | refused", "| `c` | not shown"];
        assert_eq!(Table::verdicts(&text), [&rows[..], &["| `d` | disputed"]].concat());
        assert!(text.contains("| `a` | yes | stdio | `t::one` |\n") && text.contains("commit abc"), "{text}");
        assert_eq!(table.faults().len(), 2, "{:?}", table.faults());
    }
}
