//! The title of a session, taken from its first message.

use unicode_segmentation::UnicodeSegmentation;

/// Letters in a title before it is cut.
const MAX_TITLE_CHARS: usize = 50;

/// What a session is called before anybody said anything.
const UNTITLED: &str = "New Session";

/// One line of at most 50 letters, cut at a word boundary and marked with `...`.
pub fn title_from_text(text: &str) -> String {
    let words: Vec<String> =
        text.split_whitespace().map(strip_invisible_from_title).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.is_empty() {
        return UNTITLED.to_owned();
    }
    match line.grapheme_indices(true).nth(MAX_TITLE_CHARS) {
        None => line,
        Some((end, _)) => format!("{}...", cut_title_at_word(&line, end)),
    }
}

/// Without control characters, which could move a terminal's cursor or reverse its text.
fn strip_invisible_from_title(word: &str) -> String {
    word.chars().filter(|letter| !letter.is_control() && !is_direction_mark_in_title(*letter)).collect()
}

fn is_direction_mark_in_title(letter: char) -> bool {
    matches!(letter, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}')
}

/// The last word boundary before `end`; a word that fills the whole line is cut in its middle.
fn cut_title_at_word(line: &str, end: usize) -> &str {
    let head = &line[..end];
    if line[end..].starts_with(' ') {
        return head;
    }
    head.rsplit_once(' ').map_or(head, |(words, _)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line_cut_at_a_word() {
        let cases = [
            ("", "New Session"),
            (" \n\t ", "New Session"),
            ("\u{202E}\u{7}", "New Session"),
            ("fix the build", "fix the build"),
            ("  fix\n\nthe\tbuild  ", "fix the build"),
            ("red \u{1b}[31m text", "red [31m text"),
            (&"x".repeat(50), &"x".repeat(50)),
            (&"x".repeat(51), &format!("{}...", "x".repeat(50))),
            (&format!("{} tail", "x".repeat(50)), &format!("{}...", "x".repeat(50))),
            (
                "please find out why the parser loses the last line of the file",
                "please find out why the parser loses the last line...",
            ),
            (&"é".repeat(60), &format!("{}...", "é".repeat(50))),
            (&"e\u{301}".repeat(60), &format!("{}...", "e\u{301}".repeat(50))),
            (&"👩‍💻".repeat(51), &format!("{}...", "👩‍💻".repeat(50))),
            (&"🇨🇭".repeat(51), &format!("{}...", "🇨🇭".repeat(50))),
        ];
        for (text, expected) in cases {
            assert_eq!(title_from_text(text), expected, "{text:?}");
        }
    }
}
