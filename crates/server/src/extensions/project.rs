//! MCP servers that a project brings along: `.gander/extensions.toml`, once its folder is trusted
//! and as long as the file is what it was then.

use std::collections::BTreeMap;
use std::path::Path;

use super::entry::Entry;
use crate::trust::{PROGRAMS, PROJECT, Trust};

/// A longer file is not read.
const LARGEST: u64 = 256 << 10;

/// Those of a folder, by name; none unless it is trusted. What is wrong with the file is said in the log.
pub(super) fn entries(trust: &Trust, folder: &Path) -> Vec<(String, Entry)> {
    let path = folder.join(PROJECT).join(PROGRAMS);
    if !trust.trusted_with_programs(folder) || !path.is_file() {
        return Vec::new();
    }
    read(&path).unwrap_or_else(|error| {
        tracing::warn!(%error, path = %path.display(), "a project's extensions are left out");
        Vec::new()
    })
}

fn read(path: &Path) -> Result<Vec<(String, Entry)>, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err(format!("file is larger than {LARGEST} bytes: {size}"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let entries: BTreeMap<String, Entry> = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    entries.into_iter().map(|(name, entry)| entry.checked(&name).map(|entry| (name, entry))).collect()
}
