//! Which version a program says it is, and whether that is enough.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// How long a program may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// A version: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64, pub u64, pub u64);

/// Why a program is not taken.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be run, or did not answer in time.
    #[error("{program} does not say its version: {reason}")]
    Silent { program: PathBuf, reason: String },
    /// What it says is no version.
    #[error("{program} says no version: {output}")]
    Unreadable {
        program: PathBuf,
        /// What it says.
        output: String,
    },
    /// It is too old.
    #[error("{program} is too old, {minimum} is needed: {found}")]
    Outdated {
        program: PathBuf,
        /// What is needed.
        minimum: Version,
        /// What it is.
        found: Version,
    },
}

impl Version {
    /// The first version in a text: `goose 1.16.0`, `v1.16.0`, `1.16`, `Goose 1.16.0-beta`.
    pub fn find_in(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::parse_word)
    }

    /// Runs `PROGRAM --version` and demands at least this version.
    pub async fn check_minimum(program: &Path, minimum: Self) -> Result<Self, VersionError> {
        let silent = |reason: String| VersionError::Silent { program: program.to_owned(), reason };
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await;
        let output = output.map_err(|_| silent(format!("no answer within {VERSION_TIMEOUT:?}")))?;
        let output = output.map_err(|error| silent(error.to_string()))?;
        if !output.status.success() {
            return Err(silent(output.status.to_string()));
        }
        let output = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match Self::find_in(&output) {
            Some(found) if found >= minimum => Ok(found),
            Some(found) => Err(VersionError::Outdated { program: program.to_owned(), minimum, found }),
            None => Err(VersionError::Unreadable { program: program.to_owned(), output }),
        }
    }

    /// `v1.2.3-beta` and the like; a word with a single number is none.
    fn parse_word(word: &str) -> Option<Self> {
        let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
        let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(number.len());
        let (number, rest) = number.split_at(end);
        if !(rest.is_empty() || rest.starts_with(['-', '+', ',', ')'])) {
            return None;
        }
        let mut parts = number.split('.').map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self(major, minor, parts.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let texts = [
            "goose 1.16.0",
            "v1.16.0",
            "1.16.0",
            "goose version 1.16.0",
            "Goose 1.16.0-beta",
            "gander 1.16",
            "no version",
            "build 7 of 1.2x",
        ];
        let wanted = Some(Version(1, 16, 0));
        let found = texts.map(Version::find_in);
        assert_eq!(found, [wanted, wanted, wanted, wanted, wanted, wanted, None, None]);
    }

    #[test]
    fn later_is_more() {
        assert!(Version(1, 16, 0) > Version(1, 9, 12));
        assert!(Version(2, 0, 0) > Version(1, 99, 99));
    }
}
