//! What our JSON reader lets pass when it skips over raw values, and we do not: deep nesting and lone surrogates.

/// The deepest nesting that is handled.
pub(super) const MAX_DEPTH: usize = 128;

/// Why a text is not JSON that we handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonFault {
    #[error("nesting is deeper than {MAX_DEPTH}")]
    Depth,
    #[error("lone surrogate in a string")]
    Surrogate,
}

/// Checks nesting and surrogates in one pass. Every other fault is left to the parser.
pub(super) fn check_jsonrpc_text(text: &str) -> Result<(), JsonFault> {
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut quoted) = (0_usize, 0, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += checked_text_escape_len(&bytes[at..])?,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(JsonFault::Depth);
        }
    }
    Ok(())
}

/// How many bytes after a backslash belong to the escape.
fn checked_text_escape_len(rest: &[u8]) -> Result<usize, JsonFault> {
    match checked_text_code_unit(rest) {
        None => Ok(1),
        Some(0xD800..=0xDBFF) => {
            match rest
                .get(5..)
                .filter(|_| rest.get(5) == Some(&b'\\'))
                .and_then(|low| checked_text_code_unit(&low[1..]))
            {
                Some(0xDC00..=0xDFFF) => Ok(11),
                _ => Err(JsonFault::Surrogate),
            }
        }
        Some(0xDC00..=0xDFFF) => Err(JsonFault::Surrogate),
        Some(_) => Ok(5),
    }
}

/// The code unit of `uXXXX`, if these bytes begin with one.
fn checked_text_code_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_pass_and_lone_halves_do_not() {
        let verdicts =
            [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""\ud800""#, r#""\ud800\u0041""#, r#""\udc00""#, r#""\ud8"#]
                .map(check_jsonrpc_text);
        let lone = Err(JsonFault::Surrogate);
        assert_eq!(verdicts, [Ok(()), Ok(()), lone, lone, lone, Ok(())]);
    }

    #[test]
    fn nesting_has_an_end_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check_jsonrpc_text(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check_jsonrpc_text(&nested(MAX_DEPTH + 1)), Err(JsonFault::Depth));
        assert_eq!(check_jsonrpc_text(&format!("\"{}\"", "[".repeat(1000))), Ok(()));
    }
}
