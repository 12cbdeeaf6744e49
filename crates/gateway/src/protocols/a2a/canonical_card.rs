//! The form of an agent card that is signed: canonical JSON (RFC 8785) without empty fields.

use serde_json::{Map, Value, json};

/// The card as it is signed: names in order, nothing that is empty, no signatures (RFC 8785).
pub(super) fn canonical_card(card: &Value) -> String {
    let mut card = card.clone();
    if let Some(object) = card.as_object_mut() {
        object.remove("signatures");
    }
    let mut out = String::new();
    write_canonical_json(&without_empty_fields(card).unwrap_or_else(|| json!({})), &mut out);
    out
}

/// Without what is empty: a reader that knows the fields takes that for absent.
fn without_empty_fields(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) => {
            let object: Map<String, Value> =
                object.into_iter().filter_map(|(name, value)| Some((name, without_empty_fields(value)?))).collect();
            (!object.is_empty()).then_some(Value::Object(object))
        }
        Value::Array(values) => {
            let values: Vec<Value> = values.into_iter().filter_map(without_empty_fields).collect();
            (!values.is_empty()).then_some(Value::Array(values))
        }
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Null => None,
        plain @ (Value::Bool(_) | Value::Number(_)) => Some(plain),
    }
}

fn write_canonical_json(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let mut names: Vec<&String> = object.keys().collect();
            names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write_canonical_json(&object[name], out);
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical_json(value, out);
            }
            out.push(']');
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            out.push_str(&plain.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_and_the_signatures_are_not_signed() {
        let signed = canonical_card(&json!({ "b": [1, { "z": null, "a": "ü" }], "a": true, "signatures": [1] }));
        // Readers that know the fields take what is empty for absent.
        assert_eq!(signed, "{\"a\":true,\"b\":[1,{\"a\":\"ü\"}]}");
    }
}
