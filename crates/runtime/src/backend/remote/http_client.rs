//! Requests to an agent behind another server: sent with its key, sent again where that does no harm.

use std::error::Error as _;
use std::time::Duration;

use gander_client::CertificatePin;
use gander_wire::remote::{AnswerForm, RemoteRequest};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read whole: a session with pictures.
const MAX_BODY_BYTES: usize = 64 << 20;
/// How much of a refusal is read, and how much of it is repeated.
const MAX_REFUSAL_BYTES: usize = 16 << 10;
const MAX_QUOTED_BYTES: usize = 300;
/// How often a request is sent again, and the first pause before that.
const MAX_RETRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Where an agent's server is.
#[derive(Clone, Debug)]
pub struct RemoteEndpoint {
    /// Its address, such as `https://agents.example/a2a/planner`.
    pub url: String,
    /// The key that it wants.
    pub key: Option<SecretString>,
    /// The header of the key; absent: `Authorization`, as a bearer token.
    pub key_header: Option<String>,
    /// The one certificate that it may show; absent: one that somebody known vouches for.
    pub pin: Option<CertificatePin>,
    /// How long it may be silent.
    pub timeout: Duration,
}

/// Why an agent's server does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("wants another key: it answered {0}")]
    Unauthorized(u16),
    #[error("does not know what it was asked for: {0}")]
    NotFound(String),
    #[error("refused with {0}: {1}")]
    Refused(u16, String),
    #[error("failed with {0}: {1}")]
    Failed(u16, String),
    #[error("cannot be reached: {0}")]
    Unavailable(String),
    #[error("gave an answer that cannot be read: {0}")]
    Unreadable(String),
    #[error("is not set up: {0}")]
    Settings(String),
    #[error("was not asked, the server's own store failed")]
    Store,
}

/// The way to one server.
pub struct RemoteHttp {
    http: Client,
    base: String,
    timeout: Duration,
}

/// An answer.
pub(super) enum RemoteResponse {
    Stream(Response),
    Whole(Value),
}

impl RemoteEndpoint {
    /// A server at this address, with the usual patience.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), key: None, key_header: None, pin: None, timeout: Duration::from_secs(300) }
    }
}

impl RemoteError {
    /// One word for programs.
    pub fn reason_code(&self) -> &'static str {
        match self {
            Self::Unauthorized(_) => "login_needed",
            Self::NotFound(_) | Self::Refused(..) => "agent_refused",
            Self::Failed(..) => "agent_failed",
            Self::Unavailable(_) => "agent_unreachable",
            Self::Unreadable(_) => "agent_unreadable",
            Self::Settings(_) => "agent_settings",
            Self::Store => "internal",
        }
    }
}

impl RemoteHttp {
    /// The way to the server at this endpoint. These headers go with every request.
    pub fn new(endpoint: &RemoteEndpoint, more: &[(&'static str, &str)]) -> Result<Self, RemoteError> {
        // Does nothing if the program has chosen one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let builder = Client::builder()
            .user_agent(concat!("gander/", env!("CARGO_PKG_VERSION")))
            .default_headers(remote_request_headers(endpoint, more)?)
            // A redirect would carry the key, and the requests of this server, to an address that nobody chose.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let host = endpoint.url.split_once("://").map_or("", |(_, host)| host);
        let is_local = ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local));
        let builder = if is_local { builder.no_proxy() } else { builder };
        let builder = match endpoint.pin {
            Some(pin) => {
                let tls = pin.tls_config().map_err(|error| RemoteError::Settings(error.to_string()))?;
                builder.tls_backend_preconfigured(tls).https_only(true)
            }
            None => builder,
        };
        let http = builder.build().map_err(|error| remote_connection_error(&error))?;
        let base = endpoint.url.trim_end_matches('/').to_owned();
        Ok(Self { http, base, timeout: endpoint.timeout })
    }

    /// How long the server may be silent.
    pub(super) fn silence_timeout(&self) -> Duration {
        self.timeout
    }

    /// One JSON value.
    pub async fn get_json(&self, path: &str) -> Result<Value, RemoteError> {
        self.send_whole(&RemoteRequest::get(path)).await
    }

    /// One JSON value, whatever its type is said to be.
    pub async fn send_whole(&self, request: &RemoteRequest) -> Result<Value, RemoteError> {
        let sent = self.send_with_retry(request);
        let response = tokio::time::timeout(self.timeout, sent).await.map_err(|_| silent_remote_error())??;
        tokio::time::timeout(self.timeout, read_remote_json(response)).await.map_err(|_| silent_remote_error())?
    }

    /// A stream where one is asked for and given.
    pub(super) async fn send(&self, request: &RemoteRequest) -> Result<RemoteResponse, RemoteError> {
        if request.answer == AnswerForm::Whole {
            return self.send_whole(request).await.map(RemoteResponse::Whole);
        }
        let sent = self.send_with_retry(request);
        let response = tokio::time::timeout(self.timeout, sent).await.map_err(|_| silent_remote_error())??;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.starts_with("text/event-stream") {
            true => Ok(RemoteResponse::Stream(response)),
            // Refusals of JSON-RPC, and servers that do not stream.
            false => read_remote_json(response).await.map(RemoteResponse::Whole),
        }
    }

    /// What was surely not carried out is sent again; what only looks is sent again after any failure that may pass.
    async fn send_with_retry(&self, request: &RemoteRequest) -> Result<Response, RemoteError> {
        let mut tried = 0;
        loop {
            let error = match self.builder(request).send().await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => {
                    let status = response.status().as_u16();
                    let body = read_remote_text(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
                    let may_pass = status == 429 || (request.body.is_none() && matches!(status, 502..=504));
                    (remote_status_error(status, &body), may_pass)
                }
                Err(error) => (remote_connection_error(&error), error.is_connect() || request.body.is_none()),
            };
            match error {
                (error, true) if tried < MAX_RETRIES => tracing::debug!(%error, path = request.path, "asked again"),
                (error, _) => return Err(error),
            }
            tokio::time::sleep(RETRY_PAUSE * 2_u32.pow(tried)).await;
            tried += 1;
        }
    }

    fn builder(&self, request: &RemoteRequest) -> RequestBuilder {
        let url = format!("{}{}", self.base, request.path);
        let builder = match &request.body {
            Some(body) => self.http.post(url).json(body),
            None => self.http.get(url),
        };
        builder.header(
            ACCEPT,
            match request.answer {
                AnswerForm::Stream => "text/event-stream, application/json",
                AnswerForm::Whole => "application/json",
            },
        )
    }
}

fn remote_request_headers(endpoint: &RemoteEndpoint, more: &[(&'static str, &str)]) -> Result<HeaderMap, RemoteError> {
    let mut headers = HeaderMap::new();
    for (name, value) in more {
        let value = HeaderValue::from_str(value).map_err(|error| RemoteError::Settings(error.to_string()))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    let Some(key) = &endpoint.key else { return Ok(headers) };
    let (name, value) = match &endpoint.key_header {
        Some(name) => {
            let name = name.parse::<HeaderName>();
            (
                name.map_err(|_| RemoteError::Settings("key_header names no header".to_owned()))?,
                key.expose_secret().to_owned(),
            )
        }
        None => (AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
    };
    let value = HeaderValue::from_str(&value);
    let mut value = value.map_err(|_| RemoteError::Settings("no header can hold the key".to_owned()))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

fn remote_status_error(status: u16, body: &str) -> RemoteError {
    let text = remote_body_sentence(body);
    match status {
        401 | 403 => RemoteError::Unauthorized(status),
        404 => RemoteError::NotFound(text),
        500.. => RemoteError::Failed(status, text),
        _ => RemoteError::Refused(status, text),
    }
}

/// The sentence in a refusal, wherever its protocol puts it.
fn remote_body_sentence(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let places = ["/message", "/detail", "/error/message", "/error", "/detail/0/msg"];
    let said = places.iter().find_map(|place| value.pointer(place)?.as_str());
    let text = said.unwrap_or(body).trim();
    let text = if text.is_empty() { "it gave no reason" } else { text };
    text[..text.floor_char_boundary(MAX_QUOTED_BYTES)].to_owned()
}

async fn read_remote_json(response: Response) -> Result<Value, RemoteError> {
    let body = read_remote_text(response, MAX_BODY_BYTES).await?;
    serde_json::from_str(&body).map_err(|error| RemoteError::Unreadable(error.to_string()))
}

async fn read_remote_text(mut response: Response, limit: usize) -> Result<String, RemoteError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| remote_connection_error(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > limit {
            return Err(RemoteError::Unreadable("it is too long".to_owned()));
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

pub(super) fn silent_remote_error() -> RemoteError {
    RemoteError::Unavailable("no answer in time".to_owned())
}

/// An error and what it came from, without the address.
pub(super) fn remote_connection_error(error: &reqwest::Error) -> RemoteError {
    let mut texts = vec![if error.is_timeout() { "no answer in time" } else { "no connection" }.to_owned()];
    let mut source = error.source();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    RemoteError::Unavailable(texts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_becomes_a_word_and_a_sentence() {
        let of = |status, body| {
            let error = remote_status_error(status, body);
            format!("{}: {error}", error.reason_code())
        };
        assert_eq!(of(401, ""), "login_needed: wants another key: it answered 401");
        let body = r#"{"error":{"code":-1,"message":"no such task"}}"#;
        assert_eq!(of(404, body), "agent_refused: does not know what it was asked for: no such task");
        assert_eq!(of(422, r#"{"detail":[{"msg":"x"}]}"#), "agent_refused: refused with 422: x");
        assert_eq!(of(500, ""), "agent_failed: failed with 500: it gave no reason");
    }

    #[test]
    fn a_key_goes_into_the_header_that_is_named() {
        let mut endpoint = RemoteEndpoint { key: Some("k".into()), ..RemoteEndpoint::new("http://x") };
        let headers = |endpoint: &RemoteEndpoint| remote_request_headers(endpoint, &[("a2a-version", "1.0")]);
        let bearer = headers(&endpoint).map(|headers| headers[AUTHORIZATION].clone());
        assert_eq!(bearer, Ok(HeaderValue::from_static("Bearer k")));
        endpoint.key_header = Some("X-Api-Key".to_owned());
        let named =
            headers(&endpoint).map(|headers| (headers["x-api-key"].clone(), headers.contains_key(AUTHORIZATION)));
        assert_eq!(named, Ok((HeaderValue::from_static("k"), false)));
        endpoint.key_header = Some("not a header".to_owned());
        assert!(matches!(headers(&endpoint), Err(RemoteError::Settings(_))));
    }
}
