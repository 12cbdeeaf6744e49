//! Recipes: sessions that are prepared beforehand.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use gander_wire::acp::Refusal;
use serde_json::{Map, Value, json};

/// A recipe that can be used.
pub fn check(recipe: &Value) -> Result<&Map<String, Value>, Refusal> {
    let bad = |text: &str| Refusal::BadParams(format!("not a recipe: {text}"));
    let object = recipe.as_object().ok_or_else(|| bad("no object"))?;
    for key in ["title", "description"] {
        let given = object.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        given.then_some(()).ok_or_else(|| bad(&format!("{key} is missing")))?;
    }
    let says = |key: &str| object.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    if says("instructions") || says("prompt") { Ok(object) } else { Err(bad("neither instructions nor prompt")) }
}

/// A recipe as the text of a link.
pub fn encode(recipe: &Value) -> String {
    URL_SAFE_NO_PAD.encode(recipe.to_string())
}

/// The recipe in a link.
pub fn decode(link: &str) -> Result<Value, Refusal> {
    let bad = || Refusal::BadParams("not a link to a recipe".to_owned());
    let text = link.rsplit_once("config=").map_or(link, |(_, config)| config).trim();
    let bytes = URL_SAFE_NO_PAD.decode(text).or_else(|_| URL_SAFE.decode(text)).map_err(|_| bad())?;
    let recipe: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    check(&recipe)?;
    Ok(recipe)
}

/// True if a recipe hides text from people.
pub fn hides_text(recipe: &Value) -> bool {
    let hidden = |letter: char| matches!(letter, '\u{E0000}'..='\u{E007F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}');
    recipe.to_string().chars().any(hidden)
}

/// The recipe with `{{ key }}` replaced by values.
pub fn filled(recipe: &Value, values: &Value) -> Value {
    let Some(values) = values.as_object() else { return recipe.clone() };
    match recipe {
        Value::String(text) => Value::String(values.iter().fold(text.clone(), |text, (key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.replace(&format!("{{{{ {key} }}}}"), &value).replace(&format!("{{{{{key}}}}}"), &value)
        })),
        Value::Array(items) => items.iter().map(|item| filled(item, &Value::Object(values.clone()))).collect(),
        Value::Object(fields) => {
            let values = Value::Object(values.clone());
            fields.iter().map(|(key, value)| (key.clone(), filled(value, &values))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => recipe.clone(),
    }
}

/// A recipe that begins as this conversation did.
pub fn from_conversation(name: &str, messages: &[Value], author: Option<&Value>) -> Option<Value> {
    let said = |message: &Value| -> Option<String> {
        let texts: Vec<&str> =
            message["content"].as_array()?.iter().filter_map(|piece| piece["text"].as_str()).collect();
        (message["role"] == "user" && !texts.is_empty()).then(|| texts.join("\n"))
    };
    let prompts: Vec<String> = messages.iter().filter_map(said).collect();
    let first = prompts.first()?;
    let mut recipe = json!({
        "version": "1.0.0", "title": name, "description": first.lines().next().unwrap_or(name), "prompt": first,
        "activities": prompts.iter().skip(1).take(8).collect::<Vec<_>>(), "extensions": [],
    });
    if let Some(author) = author.filter(|author| author.is_object()) {
        recipe["author"] = author.clone();
    }
    Some(recipe)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_link_holds_the_whole_recipe() {
        let recipe = json!({"title": "T", "description": "d", "prompt": "go {{ where }} – ü"});
        assert_eq!(decode(&encode(&recipe)).unwrap(), recipe);
        assert_eq!(decode(&format!("goose://recipe?config={}", encode(&recipe))).unwrap(), recipe);
        for bad in ["", "%%%", "e30", "bnVsbA"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_fill_a_recipe_everywhere() {
        let recipe = json!({"prompt": "go {{ where }}", "activities": ["{{where}} twice {{ n }}"], "x": 1});
        let filled = filled(&recipe, &json!({"where": "home", "n": 2}));
        assert_eq!(filled, json!({"prompt": "go home", "activities": ["home twice 2"], "x": 1}));
    }

    #[test]
    fn hidden_text_is_found() {
        assert!(hides_text(&json!({"title": "a\u{E0041}"})));
        assert!(!hides_text(&json!({"title": "ä, 漢字"})));
    }
}
