//! What every package holds beside its metadata.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The parts that are the same on every platform.
#[derive(Clone, Debug)]
pub(crate) struct SharedContents {
    pub(crate) licence: String,
    /// Licences of everything that is linked in.
    pub(crate) notices: String,
    /// What is linked in, for programs that look for known holes (CycloneDX).
    pub(crate) sbom: String,
    /// Manual pages by file name.
    pub(crate) manual: BTreeMap<String, String>,
    /// Completion scripts by shell.
    completions: BTreeMap<String, String>,
}

/// What the packages of one platform hold.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) binary: Vec<u8>,
    shared: SharedContents,
}

impl std::ops::Deref for Contents {
    type Target = SharedContents;

    fn deref(&self) -> &SharedContents {
        &self.shared
    }
}

impl Contents {
    pub(crate) fn new(binary: Vec<u8>, shared: &SharedContents) -> Self {
        Self { binary, shared: shared.clone() }
    }
}

impl SharedContents {
    /// Asks a binary that runs here for its manual and its completion scripts.
    pub(crate) fn from_binary(binary: &Path, licence: String, notices: String, sbom: String) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let pages = folder.path().join("man");
        run_binary(binary, &["man", &pages.to_string_lossy()])?;
        let mut manual = BTreeMap::new();
        for entry in std::fs::read_dir(&pages).map_err(|error| format!("no manual pages: {error}"))?.flatten() {
            let page = std::fs::read_to_string(entry.path()).map_err(|error| format!("cannot read a page: {error}"))?;
            manual.insert(entry.file_name().to_string_lossy().into_owned(), page);
        }
        let mut completions = BTreeMap::new();
        for shell in ["bash", "zsh", "fish"] {
            completions.insert(shell.to_owned(), run_binary(binary, &["completions", shell])?);
        }
        Ok(Self { licence, notices, sbom, manual, completions })
    }

    pub(crate) fn completions(&self, shell: &str) -> String {
        self.completions.get(shell).cloned().unwrap_or_default()
    }
}

fn run_binary(binary: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(binary).args(arguments).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{} {} failed: {said}", binary.display(), arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
