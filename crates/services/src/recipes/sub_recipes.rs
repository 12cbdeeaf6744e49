//! The files of the recipes that a recipe uses, from its own folder alone.

use std::path::Path;

use gander_agent::recipe::{SubRecipe, parse_recipe};
use gander_agent::recipe_run::SubRecipeSource;
use gander_tools::FileAccess;

use super::SessionRecipe;

/// Bytes of a recipe's file.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Reads them; what cannot be used is said and left out.
pub fn load_sub_recipes(files: &FileAccess, followed: &SessionRecipe) -> (Vec<SubRecipeSource>, Vec<String>) {
    let (mut subs, mut warnings) = (Vec::new(), Vec::new());
    for wanted in &followed.recipe.sub_recipes {
        match load_sub_recipe(files, followed, wanted) {
            Ok(sub) => subs.push(sub),
            Err(why) => warnings.push(format!("a sub-recipe was left out, {why}: {}", wanted.name)),
        }
    }
    (subs, warnings)
}

fn load_sub_recipe(
    files: &FileAccess,
    followed: &SessionRecipe,
    wanted: &SubRecipe,
) -> Result<SubRecipeSource, String> {
    let folder = followed.folder.as_deref().ok_or("its recipe did not come from a file")?;
    let path = wanted.path.trim_start_matches("{{ recipe_dir }}").trim_start_matches("{{recipe_dir}}");
    let path = if path.len() < wanted.path.len() { path.trim_start_matches('/') } else { path };
    let room = files.open(Path::new(folder), &[]).map_err(|error| error.to_string())?;
    let (located, text) = room.read_redacted(path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    let recipe = parse_recipe(&text).map_err(|flaw| flaw.to_string())?;
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = wanted.values.iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect();
    let description = wanted.description.clone().unwrap_or_else(|| recipe.description.clone());
    let folder = located.absolute_path().parent().map(|folder| folder.to_string_lossy().into_owned());
    Ok(SubRecipeSource { name: wanted.name.clone(), description, recipe, values, folder })
}
