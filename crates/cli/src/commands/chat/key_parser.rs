//! Keys: what the bytes of a terminal mean.

/// A longer paste is cut.
const MAX_PASTE: usize = 4 << 20;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// What a person did at the keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Paste(String),
    Enter,
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    End,
    KillWord,
    KillToStart,
    KillToEnd,
    Yank,
    Tab,
    BackTab,
    Escape,
    Interrupt,
    EndOfInput,
    Suspend,
    Redraw,
}

/// Makes keys of bytes, however they are cut into pieces.
#[derive(Debug, Default)]
pub(super) struct KeyParser {
    bytes: Vec<u8>,
}

/// What the first bytes are.
enum Parsed {
    /// So many bytes are this key, or nothing that means anything here.
    Key(usize, Option<Key>),
    /// More bytes have to come.
    Incomplete,
}

impl KeyParser {
    /// Takes in bytes; gives the keys that are whole.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.bytes.is_empty() {
            let Parsed::Key(length, key) = parse_key(&self.bytes) else { break };
            self.bytes.drain(..length);
            keys.extend(key);
        }
        keys
    }

    /// True if the last bytes are the beginning of something.
    pub(super) fn is_pending(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Nothing follows: an escape alone was the key of that name. A paste that is not over is waited for.
    pub(super) fn flush(&mut self) -> Vec<Key> {
        if self.bytes.starts_with(PASTE_START) {
            return Vec::new();
        }
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.first() == Some(&0x1b) { vec![Key::Escape] } else { Vec::new() }
    }
}

fn parse_key(bytes: &[u8]) -> Parsed {
    match bytes {
        [0x1b, rest @ ..] => parse_escape(bytes, rest),
        [byte @ (0..=0x1f | 0x7f), ..] => Parsed::Key(1, parse_control_key(*byte)),
        [first, ..] => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            let Some(character) = bytes.get(..length) else { return Parsed::Incomplete };
            match std::str::from_utf8(character).ok().and_then(|text| text.chars().next()) {
                Some(character) => Parsed::Key(length, Some(Key::Char(character))),
                None => Parsed::Key(1, None),
            }
        }
        [] => Parsed::Incomplete,
    }
}

fn parse_escape(bytes: &[u8], rest: &[u8]) -> Parsed {
    if bytes.starts_with(PASTE_START) {
        return parse_paste(&bytes[PASTE_START.len()..]);
    }
    match rest {
        [] | [b'[' | b'O'] => Parsed::Incomplete,
        [b'[', sequence @ ..] => match sequence.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
            Some(end) => Parsed::Key(end + 3, parse_sequence_key(&sequence[..end], sequence[end])),
            None => Parsed::Incomplete,
        },
        [b'O', letter, ..] => Parsed::Key(3, parse_sequence_key(b"", *letter)),
        [b'\r' | b'\n', ..] => Parsed::Key(2, Some(Key::NewLine)),
        [b'b', ..] => Parsed::Key(2, Some(Key::WordLeft)),
        [b'f', ..] => Parsed::Key(2, Some(Key::WordRight)),
        [0x7f | 0x08, ..] => Parsed::Key(2, Some(Key::KillWord)),
        [_, ..] => Parsed::Key(1, Some(Key::Escape)),
    }
}

fn parse_paste(text: &[u8]) -> Parsed {
    let end = text.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END);
    let Some(end) = end else { return Parsed::Incomplete };
    let pasted = String::from_utf8_lossy(&text[..end.min(MAX_PASTE)]).into_owned();
    Parsed::Key(PASTE_START.len() + end + PASTE_END.len(), Some(Key::Paste(pasted)))
}

/// A control sequence: its parameters and its last byte.
fn parse_sequence_key(parameters: &[u8], last: u8) -> Option<Key> {
    let parameters: Vec<&[u8]> = parameters.split(|byte| *byte == b';').collect();
    // 2: shift, 3: alt, 5: control.
    let modified = parameters.get(1).is_some_and(|modifier| matches!(*modifier, b"3" | b"5" | b"7"));
    Some(match (last, parameters.first().copied().unwrap_or_default()) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if modified => Key::WordRight,
        (b'D', _) if modified => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") => Key::Delete,
        (b'Z', _) => Key::BackTab,
        // Shift-enter, where the terminal tells it from enter.
        (b'u', b"13") | (b'~', b"27") => Key::NewLine,
        _ => return None,
    })
}

fn parse_control_key(byte: u8) -> Option<Key> {
    Some(match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x08 | 0x7f => Key::Backspace,
        0x09 => Key::Tab,
        0x0a => Key::NewLine,
        0x0b => Key::KillToEnd,
        0x0c => Key::Redraw,
        0x0d => Key::Enter,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x15 => Key::KillToStart,
        0x17 => Key::KillWord,
        0x19 => Key::Yank,
        0x1a => Key::Suspend,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys_however_they_are_cut() {
        let typed = "aé漢\r\x1b[A\x1b[1;5D\x1bOH\x1b[3~\x1b\r\x7f\x1b[200~one\ntwo\x1b[201~\x03";
        let keys = [
            Key::Char('a'),
            Key::Char('é'),
            Key::Char('漢'),
            Key::Enter,
            Key::Up,
            Key::WordLeft,
            Key::Home,
            Key::Delete,
            Key::NewLine,
            Key::Backspace,
            Key::Paste("one\ntwo".into()),
            Key::Interrupt,
        ];
        for size in 1..typed.len() {
            let mut parser = KeyParser::default();
            let parsed: Vec<Key> = typed.as_bytes().chunks(size).flat_map(|bytes| parser.push(bytes)).collect();
            assert_eq!(parsed, keys, "{size}");
            assert!(!parser.is_pending());
        }
    }

    #[test]
    fn an_escape_alone_is_known_when_nothing_follows() {
        let mut parser = KeyParser::default();
        assert_eq!((parser.push(b"\x1b"), parser.is_pending()), (Vec::new(), true));
        assert_eq!((parser.flush(), parser.is_pending()), (vec![Key::Escape], false));
        assert_eq!(parser.push(b"\x1b[99X\xffx"), [Key::Char('x')], "what means nothing is skipped");
    }
}
