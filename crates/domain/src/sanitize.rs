//! What people see is what runs: no character hides, turns or pads a text away.

use serde_json::Value;

/// Longer runs of spaces are counted instead of shown.
const MAX_SHOWN_SPACES: usize = 8;

/// Characters of a call that a question shows. What is more is counted.
const MAX_CALL_CHARS: usize = 4_000;

/// A title up to this length hides nothing that stands in it.
const MAX_TITLE_CHARS: usize = 600;

/// Characters of a title that stands beside what runs.
const MAX_APPENDED_TITLE_CHARS: usize = 120;

/// One visible line: controls as pictures, unseen characters by their number, padding counted.
pub fn sanitized_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut spaces = 0;
    for character in text.chars() {
        if character == ' ' {
            spaces += 1;
            continue;
        }
        push_sanitized_spaces(&mut shown, &mut spaces);
        match character {
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(character))),
            '\x7f' => shown.push('␡'),
            '⟨' | '⟩' | '\u{2400}'..='\u{243f}' => shown.push_str(&hidden_char_label(character)),
            other if is_deceptive_char(other) => shown.push_str(&hidden_char_label(other)),
            other => shown.push(other),
        }
    }
    push_sanitized_spaces(&mut shown, &mut spaces);
    shown
}

/// The text with what a screen hides, reorders or takes as a command written out; line breaks and tabs stay. For
/// messages that repeat what somebody else wrote.
pub fn sanitized_text(text: &str) -> String {
    match text.chars().any(is_deceptive_char) {
        true => text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
            match is_deceptive_char(character) {
                true => shown.push_str(&hidden_char_label(character)),
                false => shown.push(character),
            }
            shown
        }),
        false => text.to_owned(),
    }
}

/// What a call does, for whoever is asked about it: its title if that shows the tool and every argument, else the tool
/// and its arguments with the title behind them. Titles are not ours: they may say anything, at any length.
pub fn sanitized_call_text(name: &str, arguments: &Value, title: &str) -> String {
    let given = match arguments {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            sanitized_line(&arguments.to_string())
        }
    };
    let title = sanitized_line(title);
    let (name, tool) = (sanitized_line(name), name.rsplit("__").next().map(sanitized_line).unwrap_or_default());
    let shows_all = title.contains(&given) && (title.contains(&name) || title.contains(&tool));
    if shows_all && title.chars().count() <= MAX_TITLE_CHARS {
        return title;
    }
    let what = sanitized_prefix(format!("{name} {given}").trim_end(), MAX_CALL_CHARS);
    match title.is_empty() {
        true => what,
        false => format!("{what} ({})", sanitized_prefix(&title, MAX_APPENDED_TITLE_CHARS)),
    }
}

/// The beginning of a text, and how much is left out.
pub fn sanitized_prefix(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}… ⟨{} more characters⟩", &text[..end], text[end..].chars().count()),
        None => text.to_owned(),
    }
}

/// True for characters that a screen hides, reorders or takes as a command. Line breaks and tabs are not odd.
pub fn is_deceptive_char(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Soft hyphen, fillers, zero width, direction marks, spaces that are no blanks to a shell.
        '\u{a0}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{1680}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3000}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// True if a text holds characters that no reader sees. Blanks of any kind, and what joins letters, hide nothing.
pub fn has_hidden_chars(text: &str) -> bool {
    mark_hidden_chars(text).any(|(_, hidden)| hidden)
}

/// The text without them.
pub fn strip_hidden_chars(text: &str) -> String {
    mark_hidden_chars(text).filter(|(_, hidden)| !hidden).map(|(character, _)| character).collect()
}

/// Each character, and whether it is hidden.
fn mark_hidden_chars(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = ' ';
    text.chars().enumerate().map(move |(place, character)| {
        let hidden = match character {
            '\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => false,
            '\u{200c}' | '\u{200d}' => before.is_ascii(),
            '\u{feff}' => place > 0,
            other => is_deceptive_char(other),
        };
        before = character;
        (character, hidden)
    })
}

fn push_sanitized_spaces(shown: &mut String, spaces: &mut usize) {
    match *spaces > MAX_SHOWN_SPACES {
        true => shown.push_str(&format!("⟨{spaces} spaces⟩")),
        false => shown.extend(std::iter::repeat_n(' ', *spaces)),
    }
    *spaces = 0;
}

fn hidden_char_label(character: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays() {
        let text = "cargo test --workspace -- --nocapture 'größe' 漢字 ✔";
        assert_eq!(sanitized_line(text), text);
    }

    #[test]
    fn nothing_hides() {
        let cases = [
            ("ls\nrm -rf x", "ls␊rm -rf x"),
            ("ls\r\x1b[2Krm", "ls␍␛[2Krm"),
            ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
            ("a\u{202e}b", "a⟨U+202E⟩b"),
            ("a\u{200b}b", "a⟨U+200B⟩b"),
            ("a\u{9b}31m", "a⟨U+009B⟩31m"),
            ("a\u{e0041}", "a⟨U+E0041⟩"),
            ("␊", "⟨U+240A⟩"),
            ("⟨9 spaces⟩", "⟨U+27E8⟩9 spaces⟨U+27E9⟩"),
        ];
        for (text, shown) in cases {
            assert_eq!(sanitized_line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_title_does_not_hide_what_runs() {
        let arguments = serde_json::json!({ "path": "/etc/passwd" });
        let shown = |title: &str| sanitized_call_text("files__delete", &arguments, title);
        let fine = r#"files: delete {"path":"/etc/passwd"}"#;
        assert_eq!(shown(fine), fine);
        let what = r#"files__delete {"path":"/etc/passwd"}"#;
        assert_eq!(shown("List files"), format!("{what} (List files)"));
        assert_eq!(shown(""), what);
        let hidden = shown(&format!("List files{}{fine}", "\u{200b}x".repeat(5_000)));
        assert!(hidden.starts_with(&format!("{what} (List files⟨U+200B⟩x")), "{hidden}");
        assert!(hidden.ends_with("more characters⟩)") && hidden.chars().count() < 250, "{hidden}");
        assert_eq!(sanitized_call_text("now", &Value::Null, "now"), "now");
        let long = sanitized_call_text("write", &serde_json::json!({ "text": "y".repeat(9_000) }), "Write");
        assert!(long.contains("⟨5017 more characters⟩"), "{}", &long[3_900..]);
    }

    #[test]
    fn a_message_that_repeats_foreign_text_hides_nothing() {
        assert_eq!(
            sanitized_text("no such agent: a\u{202e}b\u{200d}c\n\tnext"),
            "no such agent: a⟨U+202E⟩b⟨U+200D⟩c\n\tnext"
        );
        assert_eq!(sanitized_text("größe 漢字 \u{1f600}"), "größe 漢字 \u{1f600}");
    }

    #[test]
    fn padding_is_counted_and_what_follows_is_seen() {
        let text = format!("git status{}; rm -rf x", " ".repeat(10_000));
        assert_eq!(sanitized_line(&text), "git status⟨10000 spaces⟩; rm -rf x");
    }

    #[test]
    fn what_no_reader_sees_is_found_and_taken_out() {
        let plain = "Gr\u{f6}\u{df}e\u{a0}1\r\n\t\u{6f22}\u{3000}\u{1f468}\u{200d}\u{1f469} \u{645}\u{200c}\u{647}";
        assert!(!has_hidden_chars(plain) && strip_hidden_chars(plain) == plain);
        for odd in ["a\u{e0041}b", "a\u{200b}b", "a\u{200d}b", "a\u{202e}b", "a\u{feff}b", "a\u{1b}b", "a\0b"] {
            assert!(has_hidden_chars(odd) && strip_hidden_chars(odd) == "ab", "{odd:?}");
        }
    }
}
