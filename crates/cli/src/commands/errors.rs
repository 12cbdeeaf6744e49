//! Why a command failed, as people read it: what and what to do, without the protocol's numbers.

use gander_client::CallError;

/// The command line asks for something that there is not: exit status 2.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// An error and its causes in one line.
pub(super) fn message(error: &anyhow::Error) -> String {
    let mut texts: Vec<String> = error.chain().map(|error| error_without_os_numbers(&error_cause(error))).collect();
    texts.dedup();
    texts.join(": ")
}

/// `No such file or directory (os error 2)` without its number, which says nothing more.
fn error_without_os_numbers(text: &str) -> String {
    let mut pieces = text.split(" (os error ");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(')');
        kept.push_str(rest.unwrap_or(piece));
    }
    kept
}

/// What the server refused is told in its words alone.
fn error_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref::<CallError>() {
        Some(CallError::Refused(refused)) => {
            let message = refused.message.strip_prefix("invalid params: ").unwrap_or(&refused.message);
            message.to_owned()
        }
        Some(CallError::Gone(_)) => "lost the server".to_owned(),
        Some(CallError::Late { .. } | CallError::Unreadable { .. } | CallError::Version(_)) | None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use gander_wire::jsonrpc::{Code, Error};

    use super::*;

    #[test]
    fn the_codes_of_the_protocol_are_not_for_people() {
        let refused = CallError::Refused(Error::new(Code::InvalidParams, "invalid params: no such grant: 7"));
        let error = Err::<(), _>(refused).context("cannot revoke it").expect_err("it was refused");
        assert_eq!(message(&error), "cannot revoke it: no such grant: 7");
        assert_eq!(message(&UsageError("nothing to do".to_owned()).into()), "nothing to do");
        let missing = std::fs::read("/nowhere/at/all").context("cannot read it").expect_err("there is no such file");
        assert_eq!(message(&missing), "cannot read it: No such file or directory");
        assert_eq!(error_without_os_numbers("a (os error 13): b (os error 2)"), "a: b");
    }
}
