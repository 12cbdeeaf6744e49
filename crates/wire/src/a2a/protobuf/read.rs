//! Protobuf to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::{DELIMITED, FIXED32, FIXED64, FieldCount, FieldKind, MalformedProtobuf, MessageField, MessageType, VARINT};

/// Deeper nesting is refused.
const MAX_DEPTH: usize = 100;

/// The fields of a message. What its type does not know is skipped.
pub fn read_protobuf(kind: &MessageType, bytes: &[u8]) -> Result<Map<String, Value>, MalformedProtobuf> {
    let mut fields = Map::new();
    let mut rest = ByteReader(bytes);
    while let Some((number, raw)) = rest.next_field()? {
        let Some(field) = kind.0.iter().find(|field| field.number == number) else { continue };
        match field.count {
            FieldCount::One => {
                fields.insert(field.name.to_owned(), read_protobuf_field(field, raw)?);
            }
            FieldCount::Many => {
                let list = fields.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().ok_or(MalformedProtobuf)?.push(read_protobuf_field(field, raw)?);
            }
            FieldCount::Map => {
                let (name, value) = read_protobuf_map_entry(field, raw.delimited()?)?;
                let object = fields.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                object.as_object_mut().ok_or(MalformedProtobuf)?.insert(name, value);
            }
        }
    }
    Ok(fields)
}

/// A value as it stands in the bytes.
#[derive(Clone, Copy)]
enum RawValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Delimited(&'a [u8]),
}

impl<'a> RawValue<'a> {
    fn varint(self) -> Result<u64, MalformedProtobuf> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(MalformedProtobuf) }
    }

    fn delimited(self) -> Result<&'a [u8], MalformedProtobuf> {
        if let Self::Delimited(bytes) = self { Ok(bytes) } else { Err(MalformedProtobuf) }
    }

    fn text(self) -> Result<String, MalformedProtobuf> {
        String::from_utf8(self.delimited()?.to_vec()).map_err(|_| MalformedProtobuf)
    }
}

fn read_protobuf_field(field: &MessageField, raw: RawValue<'_>) -> Result<Value, MalformedProtobuf> {
    Ok(match &field.kind {
        FieldKind::Text => raw.text()?.into(),
        FieldKind::Bytes => STANDARD.encode(raw.delimited()?).into(),
        FieldKind::Integer => raw.varint()?.cast_signed().into(),
        FieldKind::Boolean => (raw.varint()? != 0).into(),
        FieldKind::Name(names) => {
            let index = usize::try_from(raw.varint()?).map_err(|_| MalformedProtobuf)?;
            names.get(index).copied().unwrap_or_default().into()
        }
        FieldKind::Message(kind) => Value::Object(read_protobuf(kind, raw.delimited()?)?),
        FieldKind::Value => read_protobuf_value(raw.delimited()?, MAX_DEPTH)?,
        FieldKind::Struct => Value::Object(read_protobuf_struct(raw.delimited()?, MAX_DEPTH)?),
        FieldKind::Time => read_protobuf_timestamp(raw.delimited()?)?,
    })
}

fn read_protobuf_map_entry(field: &MessageField, bytes: &[u8]) -> Result<(String, Value), MalformedProtobuf> {
    let FieldKind::Message(kind) = &field.kind else { return Err(MalformedProtobuf) };
    let (mut name, mut value) = (String::new(), Map::new());
    let mut rest = ByteReader(bytes);
    while let Some((number, raw)) = rest.next_field()? {
        match number {
            1 => name = raw.text()?,
            2 => value = read_protobuf(kind, raw.delimited()?)?,
            _ => {}
        }
    }
    Ok((name, Value::Object(value)))
}

fn read_protobuf_value(bytes: &[u8], depth: usize) -> Result<Value, MalformedProtobuf> {
    let depth = depth.checked_sub(1).ok_or(MalformedProtobuf)?;
    let mut value = Value::Null;
    let mut rest = ByteReader(bytes);
    while let Some((number, raw)) = rest.next_field()? {
        value = match (number, raw) {
            (1, _) => Value::Null,
            (2, RawValue::Fixed64(bits)) => read_protobuf_number(f64::from_bits(bits)),
            (3, raw) => raw.text()?.into(),
            (4, raw) => (raw.varint()? != 0).into(),
            (5, raw) => Value::Object(read_protobuf_struct(raw.delimited()?, depth)?),
            (6, raw) => read_protobuf_list(raw.delimited()?, depth)?,
            (_, _) => value,
        };
    }
    Ok(value)
}

/// JSON tells 1 from 1.0, protobuf does not: whole numbers are shown whole.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are cast")]
fn read_protobuf_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return (number as i64).into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn read_protobuf_list(bytes: &[u8], depth: usize) -> Result<Value, MalformedProtobuf> {
    let mut values = Vec::new();
    let mut rest = ByteReader(bytes);
    while let Some((_, raw)) = rest.next_field()? {
        values.push(read_protobuf_value(raw.delimited()?, depth)?);
    }
    Ok(values.into())
}

fn read_protobuf_struct(bytes: &[u8], depth: usize) -> Result<Map<String, Value>, MalformedProtobuf> {
    let mut fields = Map::new();
    let mut rest = ByteReader(bytes);
    while let Some((_, raw)) = rest.next_field()? {
        let (mut name, mut value) = (String::new(), Value::Null);
        let mut pair = ByteReader(raw.delimited()?);
        while let Some((number, raw)) = pair.next_field()? {
            match number {
                1 => name = raw.text()?,
                2 => value = read_protobuf_value(raw.delimited()?, depth)?,
                _ => {}
            }
        }
        fields.insert(name, value);
    }
    Ok(fields)
}

fn read_protobuf_timestamp(bytes: &[u8]) -> Result<Value, MalformedProtobuf> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut rest = ByteReader(bytes);
    while let Some((number, raw)) = rest.next_field()? {
        match number {
            1 => seconds = raw.varint()?.cast_signed(),
            2 => nanos = i32::try_from(raw.varint()?).map_err(|_| MalformedProtobuf)?,
            _ => {}
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| MalformedProtobuf)?;
    Ok(time.to_string().into())
}

/// What is left of a message.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// The next field's number and value.
    fn next_field(&mut self) -> Result<Option<(u32, RawValue<'a>)>, MalformedProtobuf> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?).map_err(|_| MalformedProtobuf)?;
        let raw = match tag & 7 {
            VARINT => RawValue::Varint(self.varint()?),
            FIXED64 => RawValue::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| MalformedProtobuf)?)),
            DELIMITED => {
                let length = usize::try_from(self.varint()?).map_err(|_| MalformedProtobuf)?;
                RawValue::Delimited(self.take(length)?)
            }
            FIXED32 => {
                self.take(4)?;
                RawValue::Fixed32
            }
            _ => return Err(MalformedProtobuf),
        };
        Ok(Some((tag >> 3, raw)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], MalformedProtobuf> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(MalformedProtobuf)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, MalformedProtobuf> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let [byte] = self.take(1)? else { return Err(MalformedProtobuf) };
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(MalformedProtobuf)
    }
}
