//! The one decoder of percent escapes.

/// The text behind the escapes. `None` if an escape is broken or the bytes are no UTF-8.
pub fn decode_percent_strict(text: &str) -> Option<String> {
    let (bytes, well_formed) = decode_percent_bytes(text);
    String::from_utf8(bytes).ok().filter(|_| well_formed)
}

/// The same for addresses, of which something is made in any case: broken escapes stay, and so does what is no UTF-8.
pub fn decode_percent_lenient(text: &str) -> String {
    String::from_utf8(decode_percent_bytes(text).0).unwrap_or_else(|_| text.to_owned())
}

/// The bytes, and whether every escape was whole.
fn decode_percent_bytes(text: &str) -> (Vec<u8>, bool) {
    let (mut bytes, mut well_formed) = (Vec::with_capacity(text.len()), true);
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        // The parser of numbers would take a sign as well.
        let hex = after.get(..2).filter(|hex| *first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        match hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                well_formed &= *first != b'%';
                bytes.push(*first);
                rest = after;
            }
        }
    }
    (bytes, well_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_escapes_are_refused_or_stay() {
        assert_eq!(decode_percent_strict("a%20b%C3%A9"), Some("a b\u{e9}".to_owned()));
        for broken in ["100%", "%2", "%zz", "%ff"] {
            assert_eq!(decode_percent_strict(broken), None, "{broken}");
            assert_eq!(decode_percent_lenient(broken), broken);
        }
        assert_eq!(decode_percent_lenient("100%+a%20b"), "100%+a b");
    }
}
