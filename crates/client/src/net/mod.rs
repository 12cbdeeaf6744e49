//! Agents elsewhere: WebSocket and streamable HTTP at one address.

mod endpoint;
mod http;
mod pin;
mod stream;
mod websocket;

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::HeaderName;
use reqwest::{ClientBuilder, RequestBuilder, Response};

use crate::{Link, LinkError};
pub use endpoint::Endpoint;
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
