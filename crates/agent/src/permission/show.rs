//! What people see is what runs: no character hides, turns or pads a text away.

/// Longer runs of spaces are counted instead of shown.
const PADDING: usize = 8;

/// One visible line: controls as pictures, unseen characters by their number, padding counted.
pub fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut spaces = 0;
    for character in text.chars() {
        if character == ' ' {
            spaces += 1;
            continue;
        }
        pad(&mut shown, &mut spaces);
        match character {
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(character))),
            '\x7f' => shown.push('␡'),
            '⟨' | '⟩' | '\u{2400}'..='\u{243f}' => shown.push_str(&number(character)),
            other if is_odd(other) => shown.push_str(&number(other)),
            other => shown.push(other),
        }
    }
    pad(&mut shown, &mut spaces);
    shown
}

/// True for characters that a screen hides, reorders or takes as a command. Line breaks and tabs are not odd.
pub fn is_odd(character: char) -> bool {
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
pub fn hides(text: &str) -> bool {
    hidden(text).any(|(_, hidden)| hidden)
}

/// The text without them.
pub fn bare(text: &str) -> String {
    hidden(text).filter(|(_, hidden)| !hidden).map(|(character, _)| character).collect()
}

/// Each character, and whether it is hidden.
fn hidden(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = ' ';
    text.chars().enumerate().map(move |(place, character)| {
        let hidden = match character {
            '\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => false,
            '\u{200c}' | '\u{200d}' => before.is_ascii(),
            '\u{feff}' => place > 0,
            other => is_odd(other),
        };
        before = character;
        (character, hidden)
    })
}

fn pad(shown: &mut String, spaces: &mut usize) {
    match *spaces > PADDING {
        true => shown.push_str(&format!("⟨{spaces} spaces⟩")),
        false => shown.extend(std::iter::repeat_n(' ', *spaces)),
    }
    *spaces = 0;
}

fn number(character: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays() {
        let text = "cargo test --workspace -- --nocapture 'größe' 漢字 ✔";
        assert_eq!(line(text), text);
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
            assert_eq!(line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn padding_is_counted_and_what_follows_is_seen() {
        let text = format!("git status{}; rm -rf x", " ".repeat(10_000));
        assert_eq!(line(&text), "git status⟨10000 spaces⟩; rm -rf x");
    }

    #[test]
    fn what_no_reader_sees_is_found_and_taken_out() {
        let plain = "Gr\u{f6}\u{df}e\u{a0}1\r\n\t\u{6f22}\u{3000}\u{1f468}\u{200d}\u{1f469} \u{645}\u{200c}\u{647}";
        assert!(!hides(plain) && bare(plain) == plain);
        for odd in ["a\u{e0041}b", "a\u{200b}b", "a\u{200d}b", "a\u{202e}b", "a\u{feff}b", "a\u{1b}b", "a\0b"] {
            assert!(hides(odd) && bare(odd) == "ab", "{odd:?}");
        }
    }
}
