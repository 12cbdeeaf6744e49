//! `cargo run` and `cargo test` use what the other has built: every package has the same features in both.

use std::collections::BTreeSet;
use std::process::Command;

use crate::source::repository;

#[test]
fn running_and_testing_share_one_build() {
    let run = packages(&["--edges", "normal,build"]);
    let test = packages(&["--workspace", "--edges", "normal,build,dev"]);
    let built_again: Vec<&String> = run.difference(&test).collect();
    assert!(run.len() > 100, "cargo lists only {run:?}");
    assert!(built_again.is_empty(), "name these features in crates/testkit/Cargo.toml: {built_again:#?}");
}

/// Each package that is built, with its version and features.
fn packages(arguments: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} [{f}]"]).args(arguments);
    let output = cargo.current_dir(repository()).output().expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
