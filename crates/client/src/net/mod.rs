//! Agents elsewhere: WebSocket and streamable HTTP at one address.

mod http;
mod pin;
mod stream;
mod websocket;

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use reqwest::{ClientBuilder, RequestBuilder, Response, redirect};

use crate::{Link, LinkError};

pub use pin::{CertificatePin, InvalidPin};

/// Which connection a request belongs to.
const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// Which session it is about.
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest message that is taken in, as on stdio.
const MAX_MESSAGE: usize = gander_wire::jsonrpc::MAX_LINE;
/// How much of a refusal is repeated.
const MAX_QUOTED_REFUSAL: usize = 300;

/// The address of an agent, and what proves that one may use it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: String,
    headers: HeaderMap,
    pin: Option<CertificatePin>,
}

impl Endpoint {
    /// An address such as `http://127.0.0.1:4747/acp`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: HeaderMap::new(), pin: None }
    }

    /// With this token, which is never shown in a log.
    pub fn with_bearer(mut self, token: &str) -> Result<Self, InvalidHeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
        value.set_sensitive(true);
        self.headers.insert(reqwest::header::AUTHORIZATION, value);
        Ok(self)
    }

    /// With one more header on every request.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Spoken to only if it shows this certificate, and then whoever vouches for it.
    #[must_use]
    pub fn with_pin(mut self, pin: CertificatePin) -> Self {
        self.pin = Some(pin);
        self
    }

    /// The text at this address, which may not be larger than a message.
    pub async fn fetch_text(&self) -> Result<String, LinkError> {
        let request = self.http_client(|builder| builder)?.get(&self.url).timeout(CONNECT_TIMEOUT);
        let mut response = send_net_request_expecting(request, &[200]).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable_server_error(&error))? {
            if body.len() + chunk.len() > MAX_MESSAGE {
                return Err(LinkError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn http_client(&self, version: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<reqwest::Client, LinkError> {
        // Does nothing if the program has chosen one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let builder = version(reqwest::Client::builder())
            .default_headers(self.headers.clone())
            // A redirect would carry the token to an address nobody chose.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let host = self.url.split_once("://").map_or("", |(_, host)| host);
        let is_local = ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local));
        let builder = if is_local { builder.no_proxy() } else { builder };
        let builder = match self.pin {
            Some(pin) => {
                let tls = pin.tls_config().map_err(|error| LinkError::Unreachable(error.to_string()))?;
                builder.tls_backend_preconfigured(tls).https_only(true)
            }
            None => builder,
        };
        builder.build().map_err(|error| unreachable_server_error(&error))
    }
}

impl Link {
    /// By streamable HTTP. A stream that breaks is resumed from its last event, if the server numbers them.
    pub fn connect_http(endpoint: &Endpoint) -> Result<Self, LinkError> {
        let client = endpoint.http_client(|builder| builder)?;
        let (link, far) = Self::link_pair();
        tokio::spawn(http::run_http(client, endpoint.url.clone(), far));
        Ok(link)
    }

    /// By WebSocket. `ws://` and `wss://` are as good as `http://` and `https://`.
    pub async fn connect_websocket(endpoint: &Endpoint) -> Result<Self, LinkError> {
        let url = match endpoint.url.strip_prefix("ws") {
            Some(rest) => format!("http{rest}"),
            None => endpoint.url.clone(),
        };
        let client = endpoint.http_client(ClientBuilder::http1_only)?;
        let socket = websocket::open_websocket(&client, &url).await?;
        let (link, far) = Self::link_pair();
        tokio::spawn(websocket::run_websocket(socket, far));
        Ok(link)
    }
}

/// Sends a request; whatever is not wanted is a refusal.
async fn send_net_request_expecting(request: RequestBuilder, wanted: &[u16]) -> Result<Response, LinkError> {
    let response = request.send().await.map_err(|error| unreachable_server_error(&error))?;
    let status = response.status().as_u16();
    if wanted.contains(&status) {
        return Ok(response);
    }
    let mut message = response.text().await.unwrap_or_default();
    message.truncate(message.floor_char_boundary(MAX_QUOTED_REFUSAL));
    Err(LinkError::Refused { status, message })
}

/// An error and what it came from.
fn unreachable_server_error(error: &reqwest::Error) -> LinkError {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    LinkError::Unreachable(texts.join(": "))
}

/// The text at an address. It may not be larger than a message.
pub async fn fetch_net_text(url: &str) -> Result<String, LinkError> {
    let unreachable = |error: reqwest::Error| unreachable_server_error(&error);
    let response = reqwest::get(url).await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        return Err(LinkError::Refused { status: status.as_u16(), message: status.to_string() });
    }
    if response.content_length().is_some_and(|length| length > MAX_MESSAGE as u64) {
        return Err(LinkError::TooLong);
    }
    response.text().await.map_err(unreachable)
}
