//! Painted text in so many columns: how wide it is, and where its lines break.

use unicode_width::UnicodeWidthStr;

/// Ends every colour.
const RESET: &str = "\x1b[0m";

/// Columns that a text takes on the screen; colours take none.
pub(crate) fn wrapped_width(text: &str) -> usize {
    wrap_segments(text).map(|segment| if segment.starts_with('\x1b') { 0 } else { segment.width() }).sum()
}

/// Breaks a line between words. Further rows begin below column `hanging`, in the colour that the row before ended in.
pub(crate) fn wrap_text(text: &str, columns: usize, hanging: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut rows = WrappedRows {
        columns,
        hanging: hanging.min(columns / 2),
        done: Vec::new(),
        row: String::new(),
        width: 0,
        colours: String::new(),
    };
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            rows.space_before(wrapped_width(word));
        }
        rows.push_word(word);
    }
    rows.finish()
}

/// The beginning of an unpainted text that fits; what is longer ends with an ellipsis.
pub(crate) fn truncate_to_wrap_columns(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for character in text.chars() {
        if format!("{cut}{character}").width() >= columns {
            break;
        }
        cut.push(character);
    }
    cut.push('…');
    cut
}

struct WrappedRows {
    columns: usize,
    hanging: usize,
    done: Vec<String>,
    row: String,
    width: usize,
    /// The colours that are on at this place.
    colours: String,
}

impl WrappedRows {
    fn space_before(&mut self, next: usize) {
        if self.width + 1 + next > self.columns && self.width > self.hanging {
            self.break_row();
        } else {
            self.row.push(' ');
            self.width += 1;
        }
    }

    fn push_word(&mut self, word: &str) {
        for segment in wrap_segments(word) {
            if segment.starts_with('\x1b') {
                self.row.push_str(segment);
                if segment == RESET { self.colours.clear() } else { self.colours.push_str(segment) }
            } else if self.width + segment.width() <= self.columns {
                self.row.push_str(segment);
                self.width += segment.width();
            } else {
                self.push_long(segment);
            }
        }
    }

    /// A word that is wider than a row is cut where the row ends.
    fn push_long(&mut self, word: &str) {
        for character in word.chars() {
            let width = character.to_string().width();
            if self.width + width > self.columns {
                self.break_row();
            }
            self.row.push(character);
            self.width += width;
        }
    }

    fn break_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.truncate(row.trim_end_matches(' ').len());
        if !self.colours.is_empty() {
            row.push_str(RESET);
        }
        self.done.push(row);
        self.row = format!("{}{}", " ".repeat(self.hanging), self.colours);
        self.width = self.hanging;
    }

    fn finish(mut self) -> Vec<String> {
        self.done.push(self.row);
        self.done
    }
}

/// Escape sequences for colours, and the text between them.
fn wrap_segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match rest.find('\x1b') {
            None => rest.len(),
            Some(0) => rest.find('m').map_or(rest.len(), |end| end + 1),
            Some(start) => start,
        };
        let (segment, after) = rest.split_at(end);
        rest = after;
        (!segment.is_empty()).then_some(segment)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_between_words_and_keep_their_colour() {
        assert_eq!(wrap_text("one two three", 9, 2), ["one two", "  three"]);
        assert_eq!(wrap_text("\x1b[1mone two three\x1b[0m", 8, 0), ["\x1b[1mone two\x1b[0m", "\x1b[1mthree\x1b[0m"]);
        assert_eq!(wrap_text("0123456789ab", 8, 0), ["01234567", "89ab"]);
        assert_eq!(wrap_text("", 8, 0), [""]);
        assert_eq!(wrap_text("  indented", 20, 2), ["  indented"]);
    }

    #[test]
    fn wide_characters_count_twice_and_colours_not_at_all() {
        assert_eq!((wrapped_width("漢字"), wrapped_width("\x1b[31mab\x1b[0m")), (4, 2));
        assert_eq!(wrap_text("漢字漢字漢", 8, 0), ["漢字漢字", "漢"]);
        assert_eq!(
            (truncate_to_wrap_columns("漢字漢", 4), truncate_to_wrap_columns("abcd", 4)),
            ("漢…".into(), "abcd".into())
        );
    }
}
