//! What a provider's refusal means: statuses and bodies in, one clear message out.

use std::error::Error as _;
use std::time::Duration;

use serde_json::Value;

use super::ModelError;

/// Who refused, and what a person could do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureHints {
    /// The provider's name.
    pub provider: String,
    /// The variables that may hold its key.
    pub key_variables: Vec<String>,
    /// The address that was asked.
    pub url: String,
}

/// An HTTP answer that is no success.
pub fn failure_from_status(
    hints: &FailureHints,
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
) -> ModelError {
    let said = FailureText::from_body(body);
    let FailureHints { provider, url, .. } = hints;
    let tell = |what: &str| format!("{provider} {what} (HTTP {status}): {}", said.message);
    match status {
        _ if said.is_about_credit() => ModelError::NoCredit(tell("wants the account to be topped up")),
        401 => ModelError::Unauthorized(tell(&format!("did not accept the key, check {}", hints.key_hint()))),
        403 => ModelError::Unauthorized(tell(&format!("does not allow this to the key in {}", hints.key_hint()))),
        413 => ModelError::ContextTooLong(tell("says the request is too large")),
        _ if status < 500 && said.is_about_length() => {
            ModelError::ContextTooLong(tell("says the conversation does not fit into the model's window"))
        }
        404 | 405 => ModelError::NotFound(tell(&format!("does not know this model or address, asked {url}"))),
        429 => ModelError::RateLimited {
            message: format!("rate limited by {provider} (HTTP {status}): {}", said.message),
            retry_after,
        },
        408 | 409 | 425 | 500.. => ModelError::Overloaded {
            message: format!("{provider} returned HTTP {status}: {}", said.message),
            retry_after,
        },
        300..=399 => ModelError::NotFound(tell(&format!("points elsewhere, check the base URL, asked {url}"))),
        _ if said.is_about_policy() => ModelError::Refused(tell("refused by its content policy")),
        _ => ModelError::BadRequest(tell("did not accept the request")),
    }
}

/// An error that came inside a stream.
pub fn failure_in_stream(provider: &str, error: &Value) -> ModelError {
    let said = FailureText::from_json(error);
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = code.filter(|code| (400..600).contains(code)).unwrap_or_else(|| said.http_status());
    let hints = FailureHints { provider: provider.into(), ..FailureHints::default() };
    let tell = |what: &str| format!("{provider} {what} in the middle of its answer: {}", said.message);
    match failure_from_status(&hints, status, error.to_string().as_bytes(), None) {
        ModelError::RateLimited { .. } => {
            ModelError::RateLimited { message: tell("reached a rate limit"), retry_after: None }
        }
        ModelError::Overloaded { .. } => ModelError::Overloaded { message: tell("had trouble"), retry_after: None },
        ModelError::ContextTooLong(_) => ModelError::ContextTooLong(tell("ran out of window")),
        ModelError::NoCredit(_) => ModelError::NoCredit(tell("ran out of credit")),
        ModelError::Refused(_) => ModelError::Refused(tell("refused by its content policy")),
        ModelError::Unauthorized(_) => ModelError::Unauthorized(tell("did not accept the key")),
        ModelError::NotFound(_)
        | ModelError::BadRequest(_)
        | ModelError::Network(_)
        | ModelError::TimedOut(_)
        | ModelError::Idle(_)
        | ModelError::BadStream(_)
        | ModelError::BadArguments(_) => ModelError::BadRequest(tell("gave up")),
    }
}

impl FailureHints {
    fn key_hint(&self) -> String {
        if self.key_variables.is_empty() { "the settings".into() } else { self.key_variables.join(" or ") }
    }
}

/// What a provider said about an error, in whatever shape it came.
struct FailureText {
    message: String,
    /// Type, code and message in lower case, to look for telling words.
    words: String,
}

impl FailureText {
    fn from_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            // Gemini answers with a list of one.
            Ok(Value::Array(list)) if !list.is_empty() => Self::from_json(&list[0]),
            Ok(value) => Self::from_json(&value),
            Err(_) => Self::from_text(&String::from_utf8_lossy(body)),
        }
    }

    fn from_json(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let field = |name: &str| error.get(name).and_then(Value::as_str);
        let message = error.as_str().or_else(|| field("message")).or_else(|| field("detail"));
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        let kind = [field("type"), field("code"), field("status")].map(Option::unwrap_or_default).join(" ");
        let words = format!("{kind} {message}").to_lowercase();
        Self { message: truncate_failure_text(&message), words }
    }

    fn from_text(text: &str) -> Self {
        let is_page = text.trim_start().starts_with('<');
        let message = match text.trim() {
            "" => "no explanation given".to_owned(),
            _ if is_page => "a web page instead of an explanation".to_owned(),
            text => truncate_failure_text(text),
        };
        Self { words: message.to_lowercase(), message }
    }

    fn contains_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    fn is_about_credit(&self) -> bool {
        self.contains_any(&[
            "insufficient_quota",
            "billing_error",
            "credit balance is too low",
            "insufficient credits",
            "insufficient balance",
        ])
    }

    fn is_about_length(&self) -> bool {
        self.contains_any(&[
            "context_length_exceeded",
            "context length",
            "context window",
            "context size",
            "prompt is too long",
            "input is too long",
            "request_too_large",
            "exceeds the maximum number of tokens",
            "input token count",
            "too many tokens",
        ])
    }

    fn is_about_policy(&self) -> bool {
        self.contains_any(&["content_policy", "content_filter", "content policy", "safety"])
    }

    /// The status that would have come, had the answer not begun.
    fn http_status(&self) -> u16 {
        match () {
            () if self.contains_any(&["rate_limit", "rate limit", "too many requests"]) => 429,
            () if self.contains_any(&[
                "overloaded",
                "server_error",
                "api_error",
                "internal",
                "unavailable",
                "timeout",
            ]) =>
            {
                503
            }
            () if self.contains_any(&["authentication", "invalid_api_key", "permission"]) => 401,
            () => 400,
        }
    }
}

/// The begin of a text that may be long.
pub fn truncate_failure_text(text: &str) -> String {
    const ROOM: usize = 600;
    let text = text.trim();
    match text.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An error and what it came from, without the address.
pub(super) fn describe_network_failure(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut texts = vec![if error.is_timeout() {
        "no connection in time".to_owned()
    } else {
        network_failure_kind(error).to_owned()
    }];
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    texts.join(": ")
}

fn network_failure_kind(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "no connection"
    } else if error.is_builder() {
        "the address or a header is not valid"
    } else {
        "the connection broke"
    }
}
