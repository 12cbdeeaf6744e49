//! What our JSON readers let pass, and we do not: names that stand twice in one object, and deep nesting.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The deepest nesting that is handled.
pub const MAX_DEPTH: usize = 128;

/// Objects with more names are looked up by hash.
const MAX_LINEAR_NAMES: usize = 16;

/// Why a text is JSON that we do not handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonRefused {
    /// It is nested too deeply.
    #[error("nesting is deeper than {MAX_DEPTH}")]
    Depth,
    /// A name stands twice in one object: nobody could say which of them counts.
    #[error("a name stands twice in one object: {0}")]
    Duplicate(String),
}

/// Checks nesting and names in one pass. Every other fault is left to who reads it.
pub fn check_json(text: &[u8]) -> Result<(), JsonRefused> {
    if is_deep_json(text) {
        return Err(JsonRefused::Depth);
    }
    let mut twice = None;
    let mut reader = serde_json::Deserializer::from_slice(text);
    match (UniqueNames(&mut twice).deserialize(&mut reader), twice) {
        (Err(_), Some(name)) => Err(JsonRefused::Duplicate(name)),
        (Ok(()) | Err(_), _) => Ok(()),
    }
}

fn is_deep_json(text: &[u8]) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Reads a value, keeps nothing of it, and stops at a name that stands twice.
struct UniqueNames<'a>(&'a mut Option<String>);

impl<'de> DeserializeSeed<'de> for UniqueNames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(UniqueNames(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut names = NameSet::default();
        while let Some(ObjectName(name)) = fields.next_key()? {
            if let Some(name) = names.insert(name) {
                *self.0 = Some(name.chars().take(64).collect());
                return Err(A::Error::custom("twice"));
            }
            fields.next_value_seed(UniqueNames(&mut *self.0))?;
        }
        Ok(())
    }
}

/// A name, borrowed where it can be.
struct ObjectName<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for ObjectName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = ObjectName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<ObjectName<'de>, E> {
                Ok(ObjectName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<ObjectName<'de>, E> {
                Ok(ObjectName(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

/// The names of one object.
#[derive(Default)]
struct NameSet<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> NameSet<'de> {
    /// Gives back a name that is there already.
    fn insert(&mut self, name: Cow<'de, str>) -> Option<Cow<'de, str>> {
        if self.few.contains(&name) || self.many.contains(&name) {
            return Some(name);
        }
        if self.few.len() < MAX_LINEAR_NAMES {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_once_however_it_is_written() {
        let duplicate = |name: &str| Err(JsonRefused::Duplicate(name.to_owned()));
        assert_eq!(check_json(br#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]}"#), Ok(()));
        assert_eq!(check_json(br#"{"a":1,"\u0061":2}"#), duplicate("a"));
        assert_eq!(check_json(br#"[1,{"x":{"b":null,"b":"c"}}]"#), duplicate("b"));
        let many: Vec<String> = (0..1_000).map(|number| format!("\"{number}\":0")).collect();
        assert_eq!(check_json(format!("{{{}}}", many.join(",")).as_bytes()), Ok(()));
        assert_eq!(check_json(format!("{{{},\"999\":1}}", many.join(",")).as_bytes()), duplicate("999"));
    }

    #[test]
    fn nesting_has_an_end_wherever_it_is() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check_json(nested(MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(check_json(nested(MAX_DEPTH + 1).as_bytes()), Err(JsonRefused::Depth));
        assert_eq!(check_json(nested(2_000_000).as_bytes()), Err(JsonRefused::Depth));
        assert_eq!(check_json(format!("\"\\\"{}\"", "[".repeat(1_000)).as_bytes()), Ok(()));
    }

    #[test]
    fn other_faults_are_left_to_the_reader() {
        for text in ["", "{", "{\"a\":1,}", "nul", "1e999", "\"\\ud800\"", "{} {}"] {
            assert_eq!(check_json(text.as_bytes()), Ok(()), "{text}");
        }
    }
}
