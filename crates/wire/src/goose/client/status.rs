//! What an HTTP status of a goosed means, and whether it is worth another try.

use std::time::Duration;

use serde_json::Value;

/// How much of an answer is repeated.
const MAX_QUOTED_BODY: usize = 300;

/// Why a goosed does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoosedError {
    /// It does not know our key.
    #[error("Goose authentication failed")]
    Unauthorized,
    /// It does not know the session, or has no such route.
    #[error("Goose session not found")]
    NotFound,
    /// Its agent is not ready, also not after a pause.
    #[error("Goose agent is not ready: {0}")]
    NotReady(String),
    /// Too many requests, also after several pauses.
    #[error("Goose rate limit exceeded: {0}")]
    RateLimited(String),
    /// It failed inside.
    #[error("Goose internal error: {0}")]
    Internal(String),
    /// It is not there.
    #[error("Goose is unavailable: {0}")]
    Unavailable(String),
    /// It says no.
    #[error("Goose refused with {0}: {1}")]
    Refused(u16, String),
    /// Its stream ended in the middle.
    #[error("Goose's stream broke off: {0}")]
    Cut(String),
    /// It said so in its stream.
    #[error("{0}")]
    Said(String),
    /// Its answer cannot be read.
    #[error("Goose's answer cannot be read: {0}")]
    Unreadable(String),
}

impl GoosedError {
    /// What a status and the body that came with it mean.
    pub fn from_status(status: u16, body: &str) -> Self {
        let text = goosed_status_body_sentence(body);
        match status {
            401 | 403 => Self::Unauthorized,
            404 => Self::NotFound,
            412 | 424 => Self::NotReady(text),
            429 => Self::RateLimited(text),
            502..=504 => Self::Unavailable(text),
            500.. => Self::Internal(text),
            _ => Self::Refused(status, text),
        }
    }

    /// One word for programs.
    pub fn reason_code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::NotReady(_) => "not_ready",
            Self::RateLimited(_) => "rate_limited",
            Self::Internal(_) => "internal",
            Self::Unavailable(_) => "unavailable",
            Self::Refused(..) => "refused",
            Self::Cut(_) => "stream_cut",
            Self::Said(_) => "goose",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// How long to wait before a request that got this status is sent again; none if it is not.
///
/// An agent that is not ready gets one more chance, a busy one three, each after twice the time.
pub fn goosed_status_retry_pause(status: u16, tried: u32) -> Option<Duration> {
    match (status, tried) {
        (412 | 424, 0) => Some(Duration::from_secs(1)),
        (429, 0..=2) => Some(Duration::from_secs(1 << tried)),
        _ => None,
    }
}

/// The sentence in a body: goose has three forms of them.
fn goosed_status_body_sentence(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let said = ["message", "error", "detail"].iter().find_map(|key| value[*key].as_str());
    let text = said.unwrap_or(body).trim();
    let text = if text.is_empty() { "it gave no reason" } else { text };
    text[..text.floor_char_boundary(MAX_QUOTED_BODY)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let waits = |status| {
            (0..9).map_while(|tried| goosed_status_retry_pause(status, tried)).map(|wait| wait.as_secs()).collect()
        };
        let expected: [(u16, Vec<u64>); 5] =
            [(429, vec![1, 2, 4]), (412, vec![1]), (424, vec![1]), (500, vec![]), (401, vec![])];
        for (status, seconds) in expected {
            let got: Vec<u64> = waits(status);
            assert_eq!(got, seconds, "{status}");
        }
    }

    #[test]
    fn a_status_becomes_a_word_and_a_sentence() {
        let of = |status, body| {
            let trouble = GoosedError::from_status(status, body);
            format!("{}: {trouble}", trouble.reason_code())
        };
        assert_eq!(of(401, ""), "unauthorized: Goose authentication failed");
        assert_eq!(of(404, r#"{"message":"x"}"#), "not_found: Goose session not found");
        assert_eq!(of(424, "starting"), "not_ready: Goose agent is not ready: starting");
        assert_eq!(of(500, r#"{"message":"boom"}"#), "internal: Goose internal error: boom");
        assert_eq!(of(503, ""), "unavailable: Goose is unavailable: it gave no reason");
        assert_eq!(of(422, "missing field"), "refused: Goose refused with 422: missing field");
        assert_eq!(GoosedError::from_status(500, &"ü".repeat(999)).to_string().chars().count(), 22 + 150);
    }
}
