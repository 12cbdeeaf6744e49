//! A recipe filled in for a session: files come from its workspace alone.

use std::path::Path;

use gander_agent::recipe::{FillSources, Flaw, Recipe, Values, fill_recipe_parameters};
use gander_domain::sanitize;
use gander_tools::FileAccess;

/// Bytes of a file that is filled in.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Fills a recipe in for a session in this workspace.
pub fn fill_recipe_in_workspace(
    files: &FileAccess,
    recipe: &Recipe,
    values: &Values,
    workspace: &str,
    folder: Option<&str>,
) -> Result<Recipe, Flaw> {
    fill_recipe_parameters(
        recipe,
        values,
        &FillSources { folder, read: &|path| read_workspace_file(files, workspace, path) },
    )
}

/// The text of a file of the workspace, with nothing hidden in it and no secrets.
pub fn read_workspace_file(files: &FileAccess, workspace: &str, path: &str) -> Result<String, String> {
    let room = files.open(Path::new(workspace), &[]).map_err(|error| error.to_string())?;
    let (_, text) =
        room.read_redacted(path, MAX_FILE_BYTES).map_err(|error| sanitize::sanitized_line(&error.to_string()))?;
    Ok(sanitize::strip_hidden_chars(&text))
}
