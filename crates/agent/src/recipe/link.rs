//! A recipe as the text of a link.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{Flaw, Recipe, parse};

/// A recipe as the text of a link.
pub fn encode_recipe_link(recipe: &Value) -> String {
    URL_SAFE_NO_PAD.encode(recipe.to_string())
}

/// The recipe in a link, or in what follows `config=` in it; its own words, and as it was read.
pub fn decode_recipe_link(link: &str) -> Result<(Value, Recipe), Flaw> {
    let bad = || Flaw::new("deeplink", "it is not a link to a recipe");
    let text = link.rsplit_once("config=").map_or(link, |(_, config)| config).trim();
    let bytes = URL_SAFE_NO_PAD.decode(text).or_else(|_| URL_SAFE.decode(text)).map_err(|_| bad())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let recipe = parse::recipe_from_value(value.clone())?;
    Ok((value, recipe))
}
