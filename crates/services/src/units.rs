//! Sizes and spans of time as people write them: `4 MiB`, `10s`, `15m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written like `32 KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// A span of time, written like `10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationSetting(pub Duration);

/// Largest first: the first unit that divides a value is the one it is written in.
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIME_UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl ByteSize {
    /// As a length in memory.
    pub fn len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// True for nothing at all.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_with_unit(text, &SIZE_UNITS).map(Self).ok_or_else(|| format!("not a size such as \"4 MiB\": {text}"))
    }
}

impl FromStr for DurationSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let millis = parse_with_unit(text, &TIME_UNITS)
            .ok_or_else(|| format!("not a span of time such as \"10s\" or \"15m\": {text}"))?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = largest_fitting_unit(self.0, &SIZE_UNITS);
        write!(f, "{} {unit}", self.0 / factor)
    }
}

impl fmt::Display for DurationSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, factor) = largest_fitting_unit(millis, &TIME_UNITS);
        write!(f, "{}{unit}", millis / factor)
    }
}

fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

fn largest_fitting_unit<'a>(value: u64, units: &[(&'a str, u64)]) -> (&'a str, u64) {
    let fitting = units.iter().find(|(_, factor)| value != 0 && value.is_multiple_of(*factor));
    *fitting.unwrap_or(&units[units.len() - 1])
}

macro_rules! as_text {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}
as_text!(ByteSize);
as_text!(DurationSetting);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn units_read_and_write_alike() {
        for text in ["4 MiB", "32 KiB", "100 B", "0 B", "1 GiB"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        for text in ["10s", "15m", "250ms", "1h", "2d", "0ms"] {
            assert_eq!(text.parse::<DurationSetting>().unwrap().to_string(), text);
        }
        assert_eq!("4MiB".parse::<ByteSize>(), Ok(ByteSize(4 << 20)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "4", "MiB", "4 MB", "-1 B", "99999999999 GiB", "1.5 MiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        for text in ["", "10", "10 minutes", "s"] {
            assert!(text.parse::<DurationSetting>().is_err(), "{text}");
        }
    }
}
