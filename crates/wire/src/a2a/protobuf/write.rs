//! JSON to protobuf.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{DELIMITED, FIXED64, FieldCount, FieldKind, MessageField, MessageType, VARINT};

/// The bytes of a message. What its type does not know is left out.
pub fn write_protobuf(kind: &MessageType, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in kind.0 {
        let Some(value) = value.get(field.name).filter(|value| !value.is_null()) else { continue };
        match (field.count, value) {
            (FieldCount::One, value) => write_protobuf_field(field, value, &mut out),
            (FieldCount::Many, Value::Array(values)) => {
                values.iter().for_each(|value| write_protobuf_field(field, value, &mut out))
            }
            (FieldCount::Map, Value::Object(object)) => {
                object.iter().for_each(|pair| write_protobuf_map_entry(field, pair, &mut out))
            }
            (FieldCount::Many | FieldCount::Map, _) => {}
        }
    }
    out
}

fn write_protobuf_field(field: &MessageField, value: &Value, out: &mut Vec<u8>) {
    let number = field.number;
    match &field.kind {
        FieldKind::Text => write_protobuf_delimited(number, value.as_str().unwrap_or_default().as_bytes(), out),
        FieldKind::Bytes => {
            write_protobuf_delimited(
                number,
                &STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default(),
                out,
            );
        }
        FieldKind::Integer => {
            write_protobuf_tag(number, VARINT, out);
            write_protobuf_varint(value.as_i64().unwrap_or_default().cast_unsigned(), out);
        }
        FieldKind::Boolean => {
            write_protobuf_tag(number, VARINT, out);
            write_protobuf_varint(u64::from(value.as_bool().unwrap_or_default()), out);
        }
        FieldKind::Name(names) => {
            write_protobuf_tag(number, VARINT, out);
            let index = names.iter().position(|name| value.as_str() == Some(name)).unwrap_or_default();
            write_protobuf_varint(index as u64, out);
        }
        FieldKind::Message(kind) => write_protobuf_delimited(number, &write_protobuf(kind, value), out),
        FieldKind::Value => write_protobuf_delimited(number, &write_protobuf_value(value), out),
        FieldKind::Struct => write_protobuf_delimited(number, &write_protobuf_struct(value.as_object()), out),
        FieldKind::Time => {
            write_protobuf_delimited(number, &write_protobuf_timestamp(value.as_str().unwrap_or_default()), out)
        }
    }
}

/// A map is a list of messages: 1 is the name, 2 the value.
fn write_protobuf_map_entry(field: &MessageField, (name, value): (&String, &Value), out: &mut Vec<u8>) {
    let FieldKind::Message(kind) = &field.kind else { return };
    let mut inner = Vec::new();
    write_protobuf_delimited(1, name.as_bytes(), &mut inner);
    write_protobuf_delimited(2, &write_protobuf(kind, value), &mut inner);
    write_protobuf_delimited(field.number, &inner, out);
}

fn write_protobuf_value(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => {
            write_protobuf_tag(1, VARINT, &mut out);
            write_protobuf_varint(0, &mut out);
        }
        Value::Number(number) => {
            write_protobuf_tag(2, FIXED64, &mut out);
            out.extend_from_slice(&number.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::String(text) => write_protobuf_delimited(3, text.as_bytes(), &mut out),
        Value::Bool(value) => {
            write_protobuf_tag(4, VARINT, &mut out);
            write_protobuf_varint(u64::from(*value), &mut out);
        }
        Value::Object(fields) => write_protobuf_delimited(5, &write_protobuf_struct(Some(fields)), &mut out),
        Value::Array(values) => {
            let mut list = Vec::new();
            values.iter().for_each(|value| write_protobuf_delimited(1, &write_protobuf_value(value), &mut list));
            write_protobuf_delimited(6, &list, &mut out);
        }
    }
    out
}

fn write_protobuf_struct(fields: Option<&Map<String, Value>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        let mut inner = Vec::new();
        write_protobuf_delimited(1, name.as_bytes(), &mut inner);
        write_protobuf_delimited(2, &write_protobuf_value(value), &mut inner);
        write_protobuf_delimited(1, &inner, &mut out);
    }
    out
}

fn write_protobuf_timestamp(text: &str) -> Vec<u8> {
    let time: jiff::Timestamp = text.parse().unwrap_or_default();
    let mut out = Vec::new();
    write_protobuf_tag(1, VARINT, &mut out);
    write_protobuf_varint(time.as_second().cast_unsigned(), &mut out);
    write_protobuf_tag(2, VARINT, &mut out);
    write_protobuf_varint(i64::from(time.subsec_nanosecond()).cast_unsigned(), &mut out);
    out
}

fn write_protobuf_delimited(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_protobuf_tag(number, DELIMITED, out);
    write_protobuf_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn write_protobuf_tag(number: u32, form: u32, out: &mut Vec<u8>) {
    write_protobuf_varint(u64::from(number << 3 | form), out);
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn write_protobuf_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
