//! A part of a long text, in whole lines: a secret that were cut in two would not be known as one.

/// So many bytes at most of a text, without its first lines, and where it goes on; none if it has no such line.
pub(super) fn artifact_text_page(text: &str, offset: usize, bytes: usize) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if offset > 0 && offset >= lines.len() {
        return None;
    }
    let mut room = bytes;
    let fit = lines[offset..].iter().take_while(|line| {
        let fits = line.len() <= room;
        room = room.saturating_sub(line.len());
        fits
    });
    // A line that fits nowhere is shown as far as it goes: its end cannot be asked for.
    let end = lines.len().min(offset + fit.count().max(1));
    let mut shown = lines[offset..end].concat();
    let cut = shown.len() > bytes;
    if cut {
        shown.truncate(shown.floor_char_boundary(bytes));
        shown.truncate(shown.rfind(char::is_whitespace).unwrap_or(shown.len()));
    }
    if offset > 0 || cut || end < lines.len() {
        shown.push_str(&page_continuation_note(offset, end, lines.len(), cut));
    }
    Some(shown)
}

fn page_continuation_note(offset: usize, end: usize, all: usize, cut: bool) -> String {
    let cut = if cut { ", the end of this long line is left out" } else { "" };
    let more = if end < all { format!("; read on with offset {end}") } else { String::new() };
    format!("\n[lines {} to {end} of {all}{cut}{more}]", offset + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(text: &str, offset: usize) -> Option<String> {
        artifact_text_page(text, offset, 8)
    }

    #[test]
    fn a_short_text_is_shown_as_it_is() {
        for text in ["", "one", "one\ntwo\n"] {
            assert_eq!(shown(text, 0).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_long_text_is_shown_in_pages_that_say_where_it_goes_on() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(shown(text, 0).unwrap(), "one\ntwo\n\n[lines 1 to 2 of 4; read on with offset 2]");
        assert_eq!(shown(text, 2).unwrap(), "three\n\n[lines 3 to 3 of 4; read on with offset 3]");
        assert_eq!(shown(text, 3).unwrap(), "four\n[lines 4 to 4 of 4]");
        assert_eq!(shown(text, 4), None);
        assert_eq!(shown("", 1), None);
    }

    #[test]
    fn a_line_that_is_too_long_ends_at_a_word_and_the_next_one_can_be_asked_for() {
        let text = "four fivesix\ntwo";
        let note = "[lines 1 to 1 of 2, the end of this long line is left out; read on with offset 1]";
        assert_eq!(shown(text, 0).unwrap(), format!("four\n{note}"));
        assert!(shown("ééééééé\ntwo", 0).unwrap().starts_with("éééé\n["));
    }
}
