//! Finds known values in a text, however many and however long they are.
//!
//! A regular expression of all values would do the same, but its compiled size has a limit, and one long value exceeds it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The first bytes of a value, by which candidates are found.
type Prefix = [u8; KnownValues::SHORTEST];

/// Values by their first bytes. Memory is that of the values, time that of one pass over the text: a candidate is
/// compared as a whole only where its first bytes stand.
pub(crate) struct KnownValues {
    values: Arc<[String]>,
    /// Places in `values`, the longest value first.
    by_prefix: HashMap<Prefix, Vec<usize>>,
    /// One bit for each pair of first bytes: most positions of a text are ruled out without a hash.
    first_pairs: Box<[u64; 1024]>,
}

impl KnownValues {
    /// Values shorter than this are too common to be hidden.
    pub(crate) const SHORTEST: usize = 8;

    /// A text may end inside a value, as the output of a command that still runs does: so many of its first bytes are
    /// hidden too.
    const SHORTEST_CUT: usize = 12;

    /// These values, the longest first. Shorter ones than [`Self::SHORTEST`] are never found.
    pub(crate) fn new(values: Arc<[String]>) -> Self {
        let (mut by_prefix, mut first_pairs) = (HashMap::<Prefix, Vec<usize>>::new(), Box::new([0; 1024]));
        for (place, value) in values.iter().enumerate() {
            let Some(prefix) = value.as_bytes().first_chunk() else { continue };
            by_prefix.entry(*prefix).or_default().push(place);
            let pair = known_value_prefix_index(prefix);
            first_pairs[pair / 64] |= 1 << (pair % 64);
        }
        Self { values, by_prefix, first_pairs }
    }

    /// The text with `mask` in place of each value: of two that begin at the same place, of the longer one.
    pub(crate) fn replace_all<'a>(&self, text: &'a str, mask: &str) -> Cow<'a, str> {
        let (mut changed, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(length) =
            (!self.by_prefix.is_empty()).then(|| self.find_from(text.as_bytes(), &mut at)).flatten()
        {
            // Values are UTF-8, so one begins and ends at characters of the text.
            changed.push_str(&text[copied..at]);
            changed.push_str(mask);
            at += length;
            copied = at;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        changed.push_str(&text[copied..]);
        Cow::Owned(changed)
    }

    /// Moves `at` to the next value; returns its length.
    fn find_from(&self, text: &[u8], at: &mut usize) -> Option<usize> {
        while let Some(prefix) = text.get(*at..).and_then(|rest| rest.first_chunk::<{ Self::SHORTEST }>()) {
            if let Some(length) = self.value_at(&text[*at..], prefix) {
                return Some(length);
            }
            *at += 1;
        }
        None
    }

    fn value_at(&self, rest: &[u8], prefix: &Prefix) -> Option<usize> {
        let pair = known_value_prefix_index(prefix);
        if self.first_pairs[pair / 64] & (1 << (pair % 64)) == 0 {
            return None;
        }
        let cut = |value: &[u8]| rest.len() >= Self::SHORTEST_CUT && value.starts_with(rest);
        let mut candidates = self.by_prefix.get(prefix)?.iter().map(|place| self.values[*place].as_bytes());
        let found = candidates.find(|value| rest.starts_with(value) || cut(value))?;
        Some(found.len().min(rest.len()))
    }
}

fn known_value_prefix_index(prefix: &Prefix) -> usize {
    usize::from(u16::from_be_bytes([prefix[0], prefix[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(values: &[&str], text: &str) -> String {
        let mut values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        KnownValues::new(values.into()).replace_all(text, "*").into_owned()
    }

    #[test]
    fn every_value_is_replaced_and_nothing_else() {
        assert_eq!(replaced(&[], "12345678"), "12345678");
        assert_eq!(replaced(&["12345678"], "1234567"), "1234567");
        assert_eq!(replaced(&["12345678"], "é12345678é12345678"), "é*é*");
        assert_eq!(replaced(&["12345678", "12345678901"], "123456789012 123456789"), "*2 *9");
        assert_eq!(replaced(&["ααααααα", "βββββ"], "1ααααααα2βββββ3ααα"), "1*2*3ααα");
    }

    #[test]
    fn overlapping_begins_are_not_missed() {
        // The first bytes of the value stand one place before it too.
        assert_eq!(replaced(&["aaaaaaaab"], "aaaaaaaaab"), "a*");
    }

    #[test]
    fn a_value_that_is_cut_off_at_the_end_is_replaced_too() {
        assert_eq!(replaced(&["0123456789abcdef"], "so far 0123456789ab"), "so far *");
        assert_eq!(replaced(&["0123456789abcdef"], "so far 0123456789a"), "so far 0123456789a");
        assert_eq!(replaced(&["0123456789abcdef"], "0123456789abc and more"), "0123456789abc and more");
    }

    #[test]
    fn length_and_number_have_no_limit() {
        let long: Vec<String> = (0..300).map(|place| format!("{place:03}{}", "x".repeat(4_000_000 / 300))).collect();
        let short: Vec<String> = (0..20_000).map(|place| format!("value-{place:05}")).collect();
        let values: Vec<&str> = long.iter().chain(&short).map(String::as_str).collect();
        let text = format!("{} and {} and value-2", long[7], short[19_999]);
        assert_eq!(replaced(&values, &text), "* and * and value-2");
    }
}
