//! Protobuf to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::{Count, DELIMITED, FIXED32, FIXED64, Field, Kind, Malformed, Type, VARINT};

/// Deeper nesting is refused.
const MAX_DEPTH: usize = 100;

/// The fields of a message. What its type does not know is skipped.
pub fn read(kind: &Type, bytes: &[u8]) -> Result<Map<String, Value>, Malformed> {
    let mut fields = Map::new();
    let mut rest = Bytes(bytes);
    while let Some((number, raw)) = rest.next()? {
        let Some(field) = kind.0.iter().find(|field| field.number == number) else { continue };
        match field.count {
            Count::One => {
                fields.insert(field.name.to_owned(), single(field, raw)?);
            }
            Count::Many => {
                let list = fields.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().ok_or(Malformed)?.push(single(field, raw)?);
            }
            Count::Map => {
                let (name, value) = entry(field, raw.delimited()?)?;
                let object = fields.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                object.as_object_mut().ok_or(Malformed)?.insert(name, value);
            }
        }
    }
    Ok(fields)
}

/// A value as it stands in the bytes.
#[derive(Clone, Copy)]
enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Delimited(&'a [u8]),
}

impl<'a> Raw<'a> {
    fn varint(self) -> Result<u64, Malformed> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(Malformed) }
    }

    fn delimited(self) -> Result<&'a [u8], Malformed> {
        if let Self::Delimited(bytes) = self { Ok(bytes) } else { Err(Malformed) }
    }

    fn text(self) -> Result<String, Malformed> {
        String::from_utf8(self.delimited()?.to_vec()).map_err(|_| Malformed)
    }
}

fn single(field: &Field, raw: Raw<'_>) -> Result<Value, Malformed> {
    Ok(match &field.kind {
        Kind::Text => raw.text()?.into(),
        Kind::Bytes => STANDARD.encode(raw.delimited()?).into(),
        Kind::Integer => raw.varint()?.cast_signed().into(),
        Kind::Boolean => (raw.varint()? != 0).into(),
        Kind::Name(names) => {
            let index = usize::try_from(raw.varint()?).map_err(|_| Malformed)?;
            names.get(index).copied().unwrap_or_default().into()
        }
        Kind::Message(kind) => Value::Object(read(kind, raw.delimited()?)?),
        Kind::Value => any(raw.delimited()?, MAX_DEPTH)?,
        Kind::Struct => Value::Object(object(raw.delimited()?, MAX_DEPTH)?),
        Kind::Time => time(raw.delimited()?)?,
    })
}

fn entry(field: &Field, bytes: &[u8]) -> Result<(String, Value), Malformed> {
    let Kind::Message(kind) = &field.kind else { return Err(Malformed) };
    let (mut name, mut value) = (String::new(), Map::new());
    let mut rest = Bytes(bytes);
    while let Some((number, raw)) = rest.next()? {
        match number {
            1 => name = raw.text()?,
            2 => value = read(kind, raw.delimited()?)?,
            _ => {}
        }
    }
    Ok((name, Value::Object(value)))
}

fn any(bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let depth = depth.checked_sub(1).ok_or(Malformed)?;
    let mut value = Value::Null;
    let mut rest = Bytes(bytes);
    while let Some((number, raw)) = rest.next()? {
        value = match (number, raw) {
            (1, _) => Value::Null,
            (2, Raw::Fixed64(bits)) => number_of(f64::from_bits(bits)),
            (3, raw) => raw.text()?.into(),
            (4, raw) => (raw.varint()? != 0).into(),
            (5, raw) => Value::Object(object(raw.delimited()?, depth)?),
            (6, raw) => list(raw.delimited()?, depth)?,
            (_, _) => value,
        };
    }
    Ok(value)
}

/// JSON tells 1 from 1.0, protobuf does not: whole numbers are shown whole.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are cast")]
fn number_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return (number as i64).into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn list(bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let mut values = Vec::new();
    let mut rest = Bytes(bytes);
    while let Some((_, raw)) = rest.next()? {
        values.push(any(raw.delimited()?, depth)?);
    }
    Ok(values.into())
}

fn object(bytes: &[u8], depth: usize) -> Result<Map<String, Value>, Malformed> {
    let mut fields = Map::new();
    let mut rest = Bytes(bytes);
    while let Some((_, raw)) = rest.next()? {
        let (mut name, mut value) = (String::new(), Value::Null);
        let mut pair = Bytes(raw.delimited()?);
        while let Some((number, raw)) = pair.next()? {
            match number {
                1 => name = raw.text()?,
                2 => value = any(raw.delimited()?, depth)?,
                _ => {}
            }
        }
        fields.insert(name, value);
    }
    Ok(fields)
}

fn time(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut rest = Bytes(bytes);
    while let Some((number, raw)) = rest.next()? {
        match number {
            1 => seconds = raw.varint()?.cast_signed(),
            2 => nanos = i32::try_from(raw.varint()?).map_err(|_| Malformed)?,
            _ => {}
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| Malformed)?;
    Ok(time.to_string().into())
}

/// What is left of a message.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The next field's number and value.
    fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        let raw = match tag & 7 {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => Raw::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?)),
            DELIMITED => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Raw::Delimited(self.take(length)?)
            }
            FIXED32 => {
                self.take(4)?;
                Raw::Fixed32
            }
            _ => return Err(Malformed),
        };
        Ok(Some((tag >> 3, raw)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let [byte] = self.take(1)? else { return Err(Malformed) };
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}
