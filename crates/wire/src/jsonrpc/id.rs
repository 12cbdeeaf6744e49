//! The id of a JSON-RPC request.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// The id of a request: a 64-bit integer or a short string.
///
/// `null`, fractions, and anything longer than [`RequestId::MAX`] bytes are no ids here, so they are never echoed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// An integer, signed or unsigned.
    Number(i128),
    /// A string.
    Text(Box<str>),
}

impl RequestId {
    /// The longest id in bytes of JSON.
    pub const MAX: usize = 256;

    /// Reads an id from its JSON.
    pub fn parse(raw: &RawValue) -> Option<Self> {
        let json = raw.get();
        match json.as_bytes().first()? {
            _ if json.len() > Self::MAX => None,
            b'"' => serde_json::from_str::<Box<str>>(json).ok().map(Self::Text),
            _ => json.parse().ok().filter(id_fits_i64).map(Self::Number),
        }
    }

    /// A string id.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(signed), _) => serializer.serialize_i64(signed),
                (Err(_), Ok(unsigned)) => serializer.serialize_u64(unsigned),
                (Err(_), Err(_)) => serializer.serialize_unit(),
            },
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&raw).ok_or_else(|| de::Error::custom("not a request id"))
    }
}

fn id_fits_i64(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}
