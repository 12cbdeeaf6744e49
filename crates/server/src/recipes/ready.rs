//! A recipe filled in for a session: files come from its workspace alone.

use std::path::Path;

use gander_agent::permission::{is_secret, show};
use gander_agent::recipe::{Flaw, Recipe, Values, Ways, fill};
use gander_agent::tools::Workspace;

/// Bytes of a file that is filled in.
const LARGEST: u64 = 256 << 10;

/// Fills a recipe in for a session in this workspace.
pub fn ready(recipe: &Recipe, values: &Values, workspace: &str, folder: Option<&str>) -> Result<Recipe, Flaw> {
    fill(recipe, values, &Ways { folder, read: &|path| file(workspace, path) })
}

/// The text of a file of the workspace, with nothing hidden in it and no secrets.
pub fn file(workspace: &str, path: &str) -> Result<String, String> {
    let room = Workspace::open(Path::new(workspace), &[]).map_err(|error| error.to_string())?;
    let located = room.locate(path).map_err(|error| error.to_string())?;
    if is_secret(Path::new(path)) || is_secret(located.absolute()) {
        return Err(format!("the file may hold secrets: {}", show::line(path)));
    }
    room.read_text(&located, LARGEST).map(|text| show::bare(&text)).map_err(|error| error.to_string())
}
