//! Texts that people write: recipes, the templates in them, the settings file.

use std::cell::OnceCell;
use std::path::PathBuf;

use gander::config::{Config, Environment, Flags};
use gander_agent::recipe::{
    FillSources, Values, fill_recipe_parameters, parse_whole_recipe, recipe_from_value, recipe_to_yaml,
};
use serde_json::json;

/// Recipes: what can be read is read the same after it was written as JSON or YAML, and can be filled in or is refused.
pub fn fuzz_recipe(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok((value, recipe)) = parse_whole_recipe(text) else { return };
    let written = recipe.to_json();
    let again = recipe_from_value(written.clone()).expect("what was written can be read");
    assert_eq!(again.to_json(), written);
    if let Ok(yaml) = recipe_to_yaml(&value) {
        drop(parse_whole_recipe(&yaml));
    }
    let values: Values = recipe.parameters.iter().map(|known| (known.key.clone(), "1".to_owned())).collect();
    let read = |path: &str| Err(format!("no such file: {path}"));
    drop(fill_recipe_parameters(&recipe, &values, &FillSources { folder: Some("/recipes"), read: &read }));
    drop((recipe.all_text(), recipe.first_prompt(), recipe.missing_parameters(&Values::new()).len()));
}

/// Templates: a prompt with this text is filled in within its bounds, or refused.
pub fn fuzz_template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parameter =
        |key: &str| json!({ "key": key, "input_type": "string", "requirement": "required", "description": "d" });
    let parameters = ["a", "b", "name"].map(parameter);
    let value = json!({ "title": "t", "description": "d", "prompt": text, "parameters": parameters });
    let Ok(recipe) = recipe_from_value(value) else { return };
    let values: Values = [("a", "x".repeat(1000)), ("b", "2".to_owned()), ("name", "ä{{ a }}".to_owned())]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
    let read = |path: &str| Err(format!("no such file: {path}"));
    if let Ok(filled) = fill_recipe_parameters(&recipe, &values, &FillSources { folder: None, read: &read }) {
        assert!(filled.prompt.map_or(0, |prompt| prompt.len()) <= 512 << 10, "longer than a text may be");
    }
}

/// The settings file: it is taken or refused with a line that it has.
pub fn fuzz_settings(data: &[u8]) {
    thread_local!(static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() });
    let file: PathBuf = FOLDER.with(|folder| {
        let shared = PathBuf::from("/dev/shm");
        let made = || if shared.is_dir() { tempfile::tempdir_in(&shared) } else { tempfile::tempdir() };
        folder.get_or_init(|| made().unwrap()).path().join("gander.toml")
    });
    std::fs::write(&file, data).unwrap();
    let home = file.parent().unwrap().to_string_lossy().into_owned();
    let environment = Environment::from_pairs([("HOME".to_owned(), home.clone()), ("GANDER_DATA".to_owned(), home)]);
    let flags = Flags { config: Some(file), ..Flags::default() };
    match Config::load(&flags, &environment) {
        Ok(config) => drop(config.catalogue().map(drop)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
