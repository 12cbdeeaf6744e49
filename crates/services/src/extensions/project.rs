//! MCP servers that a project brings along: `.gander/extensions.toml`, once its folder is trusted
//! and as long as the file is what it was then.

use std::collections::BTreeMap;
use std::path::Path;

use super::entry::ExtensionEntry;
use crate::trust::{Trust, read_trusted_program_file};

/// Those of a folder, by name; none unless it is trusted. What is wrong with the file is said in the log.
pub(super) fn project_extension_entries(trust: &Trust, folder: &Path) -> Vec<(String, ExtensionEntry)> {
    if !trust.is_trusted_with_programs(folder) {
        return Vec::new();
    }
    read_project_extension_file(folder).unwrap_or_else(|error| {
        tracing::warn!(%error, folder = %folder.display(), "a project's extensions are left out");
        Vec::new()
    })
}

fn read_project_extension_file(folder: &Path) -> Result<Vec<(String, ExtensionEntry)>, String> {
    let Some(bytes) = read_trusted_program_file(folder).map_err(|error| error.to_string())? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let entries: BTreeMap<String, ExtensionEntry> =
        toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    entries.into_iter().map(|(name, entry)| entry.validated(&name).map(|entry| (name, entry))).collect()
}
