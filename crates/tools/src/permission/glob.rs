//! Patterns of rules: `*` stands for anything, everything else for itself.

/// True if the whole text fits the pattern.
pub(super) fn matches_glob_pattern(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// True if the pattern stands for one text alone.
pub(super) fn is_exact_glob(pattern: &str) -> bool {
    !pattern.contains('*')
}

#[cfg(test)]
mod tests {
    use super::matches_glob_pattern;

    #[test]
    fn stars_stand_for_anything() {
        let fitting = [
            ("", ""),
            ("*", ""),
            ("*", "x"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*c", "ac"),
            ("*b*", "abc"),
            ("a**", "ab"),
        ];
        let others = [("", "x"), ("a", "ab"), ("a*", "b"), ("a*a", "a"), ("*b", "abc"), ("a*b*c", "acb")];
        assert_eq!(fitting.map(|(pattern, text)| matches_glob_pattern(pattern, text)), [true; 8]);
        assert_eq!(others.map(|(pattern, text)| matches_glob_pattern(pattern, text)), [false; 6]);
    }
}
