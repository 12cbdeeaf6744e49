//! Reads JSON that the store itself has written.

use serde::Deserialize;

/// What came in was checked for its depth then, and is stored inside a few objects of ours. The reader's own limit would refuse
/// here what was accepted there, and a session with such a value could never be read again.
pub(crate) fn parse_stored_json<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}
