//! JSON to protobuf.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Count, DELIMITED, FIXED64, Field, Kind, Type, VARINT};

/// The bytes of a message. What its type does not know is left out.
pub fn write(kind: &Type, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in kind.0 {
        let Some(value) = value.get(field.name).filter(|value| !value.is_null()) else { continue };
        match (field.count, value) {
            (Count::One, value) => single(field, value, &mut out),
            (Count::Many, Value::Array(values)) => values.iter().for_each(|value| single(field, value, &mut out)),
            (Count::Map, Value::Object(object)) => object.iter().for_each(|pair| entry(field, pair, &mut out)),
            (Count::Many | Count::Map, _) => {}
        }
    }
    out
}

fn single(field: &Field, value: &Value, out: &mut Vec<u8>) {
    let number = field.number;
    match &field.kind {
        Kind::Text => delimited(number, value.as_str().unwrap_or_default().as_bytes(), out),
        Kind::Bytes => {
            delimited(number, &STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default(), out);
        }
        Kind::Integer => {
            tag(number, VARINT, out);
            varint(value.as_i64().unwrap_or_default().cast_unsigned(), out);
        }
        Kind::Boolean => {
            tag(number, VARINT, out);
            varint(u64::from(value.as_bool().unwrap_or_default()), out);
        }
        Kind::Name(names) => {
            tag(number, VARINT, out);
            let index = names.iter().position(|name| value.as_str() == Some(name)).unwrap_or_default();
            varint(index as u64, out);
        }
        Kind::Message(kind) => delimited(number, &write(kind, value), out),
        Kind::Value => delimited(number, &any(value), out),
        Kind::Struct => delimited(number, &object(value.as_object()), out),
        Kind::Time => delimited(number, &time(value.as_str().unwrap_or_default()), out),
    }
}

/// A map is a list of messages: 1 is the name, 2 the value.
fn entry(field: &Field, (name, value): (&String, &Value), out: &mut Vec<u8>) {
    let Kind::Message(kind) = &field.kind else { return };
    let mut inner = Vec::new();
    delimited(1, name.as_bytes(), &mut inner);
    delimited(2, &write(kind, value), &mut inner);
    delimited(field.number, &inner, out);
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => {
            tag(1, VARINT, &mut out);
            varint(0, &mut out);
        }
        Value::Number(number) => {
            tag(2, FIXED64, &mut out);
            out.extend_from_slice(&number.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::String(text) => delimited(3, text.as_bytes(), &mut out),
        Value::Bool(value) => {
            tag(4, VARINT, &mut out);
            varint(u64::from(*value), &mut out);
        }
        Value::Object(fields) => delimited(5, &object(Some(fields)), &mut out),
        Value::Array(values) => {
            let mut list = Vec::new();
            values.iter().for_each(|value| delimited(1, &any(value), &mut list));
            delimited(6, &list, &mut out);
        }
    }
    out
}

fn object(fields: Option<&Map<String, Value>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        let mut inner = Vec::new();
        delimited(1, name.as_bytes(), &mut inner);
        delimited(2, &any(value), &mut inner);
        delimited(1, &inner, &mut out);
    }
    out
}

fn time(text: &str) -> Vec<u8> {
    let time: jiff::Timestamp = text.parse().unwrap_or_default();
    let mut out = Vec::new();
    tag(1, VARINT, &mut out);
    varint(time.as_second().cast_unsigned(), &mut out);
    tag(2, VARINT, &mut out);
    varint(i64::from(time.subsec_nanosecond()).cast_unsigned(), &mut out);
    out
}

fn delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    tag(number, DELIMITED, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn tag(number: u32, form: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | form), out);
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
