//! The token that a request brings.

use http::header::{self, HeaderMap, HeaderName};

/// Headers that hold nothing but a token: goose's, and the one of many REST clients.
const TOKEN_HEADERS: [HeaderName; 2] = [HeaderName::from_static("x-secret-key"), HeaderName::from_static("x-api-key")];

/// True if a request brings a token of any kind, right or wrong.
pub(crate) fn presents_token(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || TOKEN_HEADERS.iter().any(|name| headers.contains_key(name))
}

/// The one token of a request. Two are none: nobody could say which of them counted.
pub(crate) fn request_token(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get_all(header::AUTHORIZATION).iter().map(|value| bearer_token(value.to_str().ok()?));
    let secret = TOKEN_HEADERS.into_iter().flat_map(|name| headers.get_all(name)).map(|value| value.to_str().ok());
    let mut all = bearer.chain(secret);
    match (all.next(), all.next()) {
        (Some(token), None) => token.filter(|token| !token.is_empty()),
        (Some(_) | None, _) => None,
    }
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
