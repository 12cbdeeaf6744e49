//! Tests that show nothing on this machine: never in silence.

use std::io::Write as _;

/// What a build machine may leave out: a name, a tab, the reason.
const LISTED: &str = include_str!("../../../.ci/skips.tsv");

/// Says that `test` shows nothing here, and why.
///
/// # Panics
///
/// Under CI, where everything that tests need is installed, unless `.ci/skips.tsv` lists the test with a reason.
pub fn skipped(test: &str, why: &str) {
    let may = std::env::var_os("CI").is_none() || is_listed(LISTED, test);
    assert!(may, "skipped under CI and not listed in .ci/skips.tsv: {test}: {why}");
    // Not by a macro that prints: the test's harness would hide it, and `.ci/run` looks for these lines.
    writeln!(std::io::stderr(), "skipped {test}: {why}").ok();
}

fn is_listed(list: &str, test: &str) -> bool {
    let lines = list.lines().filter_map(|line| line.split_once('\t'));
    lines.into_iter().any(|(name, reason)| name == test && !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_a_reason_is_listed() {
        let list = "# a comment\nfirst\tneeds a moon\nsecond\t \nthird\n";
        assert!(is_listed(list, "first"));
        assert!(["second", "third", "fourth", "# a comment"].iter().all(|name| !is_listed(list, name)));
    }
}
