//! What is released: version, commit, time, and the notes from the changelog.

use std::path::Path;
use std::process::Command;

/// The names under which packages are published. `gander` alone is taken in both registries.
pub(crate) const PACKAGE: &str = "gander-server";
pub(crate) const SUMMARY: &str = "One agent server that speaks every agent protocol";

/// What is released.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    pub(crate) version: String,
    pub(crate) commit: String,
    /// The commit's time, in seconds since 1970: every file in every archive has it.
    pub(crate) at: u64,
    /// What the changelog says of this version, or of what comes next.
    pub(crate) notes: String,
}

impl Release {
    pub(crate) fn of_repository(root: &Path) -> Result<Self, String> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let commit = git(root, &["rev-parse", "HEAD"])?;
        let at = git(root, &["log", "-1", "--format=%ct"])?;
        let at = at.parse().map_err(|_| format!("git gives no time of the commit: {at}"))?;
        let changelog = root.join("CHANGELOG.md");
        let changelog = std::fs::read_to_string(&changelog)
            .map_err(|error| format!("cannot read {}: {error}", changelog.display()))?;
        let notes =
            release_notes(&changelog, &version).ok_or("CHANGELOG.md has neither this version nor Unreleased")?;
        Ok(Self { version, commit, at, notes })
    }
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The section of a version, else the one of what is not released yet.
pub(crate) fn release_notes(changelog: &str, version: &str) -> Option<String> {
    let section = |wanted: &str| {
        let mut lines = changelog.lines().skip_while(|line| !is_heading(line, wanted));
        lines.next()?;
        let body: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
        Some(body.join("\n").trim().to_owned() + "\n")
    };
    section(version).or_else(|| section("Unreleased"))
}

fn is_heading(line: &str, wanted: &str) -> bool {
    let heading = line.strip_prefix("## ").map(|heading| heading.split(' ').next().unwrap_or_default());
    heading.is_some_and(|heading| heading.trim_matches(['[', ']']) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str =
        "# Changelog\n\n## Unreleased\n\n- new\n\n## [0.2.0] - 2026-01-01\n\n- old\n\n## 0.1.0\n- first\n";

    #[test]
    fn notes_are_those_of_the_version_or_of_what_comes_next() {
        assert_eq!(release_notes(CHANGELOG, "0.2.0").as_deref(), Some("- old\n"));
        assert_eq!(release_notes(CHANGELOG, "0.1.0").as_deref(), Some("- first\n"));
        assert_eq!(release_notes(CHANGELOG, "0.3.0").as_deref(), Some("- new\n"));
        assert_eq!(release_notes("# Changelog\n", "0.3.0"), None);
    }
}
