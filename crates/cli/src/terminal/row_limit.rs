//! Long outputs in few rows: the beginning, the end, and how much is between them.

/// What of so many lines is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLimit {
    /// Lines of the beginning.
    pub(super) head: usize,
    /// Lines of the end.
    pub(super) tail: usize,
}

impl RowLimit {
    /// Which lines of a text of which `shown` are printed already are printed now: before the gap, the size of the gap, and
    /// after it.
    pub(super) fn remaining<'a>(self, lines: &'a [&'a str], shown: usize) -> (&'a [&'a str], usize, &'a [&'a str]) {
        let shown = shown.min(lines.len());
        let head = self.head.max(shown).min(lines.len());
        let hidden = lines.len() - head;
        // A gap of one line takes as much room as the line.
        if hidden <= self.tail + 1 {
            return (&lines[shown..], 0, &[]);
        }
        (&lines[shown..head], hidden - self.tail, &lines[lines.len() - self.tail..])
    }
}

/// The start of a line that fits into so many columns; what is longer ends with an ellipsis. Wide characters count as one:
/// a line that wraps is ugly, not wrong.
pub(super) fn cut_line_to_row_limit(line: &str, columns: usize) -> String {
    match line.char_indices().nth(columns.max(8)) {
        Some(_) => line.chars().take(columns.max(8) - 1).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_shown() {
        let limit = RowLimit { head: 2, tail: 1 };
        let lines = ["a", "b", "c", "d", "e"];
        assert_eq!(limit.remaining(&lines, 0), (&lines[..2], 2, &lines[4..]));
        assert_eq!(limit.remaining(&lines, 2), (&lines[2..2], 2, &lines[4..]));
        assert_eq!(limit.remaining(&lines[..4], 1), (&lines[1..4], 0, &lines[..0]), "a gap of one line is no gain");
        assert_eq!(limit.remaining(&[], 0), (&lines[..0], 0, &lines[..0]));
        assert_eq!(
            (cut_line_to_row_limit("0123456789", 9), cut_line_to_row_limit("012345678", 9)),
            ("01234567…".into(), "012345678".into())
        );
    }
}
