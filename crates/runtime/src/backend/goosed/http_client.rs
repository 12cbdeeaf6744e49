//! Requests to a goosed: sent with its key, sent again where that helps.

use std::error::Error as _;
use std::time::Duration;

use gander_wire::goose::client::{GoosedError, goosed_status_retry_pause};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, redirect};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::GoosedRemote;

/// How long it may take to reach a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest answer that is read whole: an exported session with pictures.
const MAX_BODY_BYTES: usize = 64 << 20;

/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 16 << 10;

/// The way to one goosed.
pub(super) struct GoosedHttp {
    http: Client,
    base: String,
    timeout: Duration,
    /// The first pause; later ones are as much longer as they should be.
    unit: Duration,
}

impl GoosedHttp {
    pub(super) fn new(remote: &GoosedRemote) -> Result<Self, GoosedError> {
        // Does nothing if the program has chosen one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut headers = HeaderMap::new();
        if let Some(key) = &remote.key {
            let value = HeaderValue::from_str(key.expose_secret());
            let mut value = value.map_err(|_| GoosedError::Unauthorized)?;
            value.set_sensitive(true);
            headers.insert("x-secret-key", value);
        }
        let builder = Client::builder()
            .user_agent(concat!("gander/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // A redirect would carry the key to an address nobody chose.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let host = remote.url.split_once("://").map_or("", |(_, host)| host);
        let local = ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local));
        let builder = if local { builder.no_proxy() } else { builder };
        let builder = match remote.pin {
            Some(pin) => {
                let tls = pin.tls_config().map_err(|error| GoosedError::Unavailable(error.to_string()))?;
                builder.tls_backend_preconfigured(tls).https_only(true)
            }
            None => builder,
        };
        let http = builder.build().map_err(|error| goosed_connection_trouble(&error))?;
        let base = remote.url.trim_end_matches('/').to_owned();
        Ok(Self { http, base, timeout: remote.timeout, unit: remote.pause })
    }

    /// How long goose may be silent.
    pub(super) fn silence_timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) async fn post_json(&self, path: &str, body: &Value) -> Result<Value, GoosedError> {
        let request = || self.http.post(format!("{}{path}", self.base)).timeout(self.timeout).json(body);
        read_goosed_json(self.send_with_retry(path, request).await?).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, GoosedError> {
        let request = || self.http.get(format!("{}{path}", self.base)).timeout(self.timeout);
        read_goosed_json(self.send_with_retry(path, request).await?).await
    }

    /// `/reply`: the answer streams, however long that takes.
    pub(super) async fn post_reply(&self, body: &Value) -> Result<Response, GoosedError> {
        let request = || {
            let request = self.http.post(format!("{}/reply", self.base)).json(body);
            request.header("accept", "text/event-stream")
        };
        match tokio::time::timeout(self.timeout, self.send_with_retry("/reply", request)).await {
            Ok(answer) => answer,
            Err(_) => Err(GoosedError::Unavailable("it does not begin to answer".to_owned())),
        }
    }

    async fn send_with_retry(&self, path: &str, request: impl Fn() -> RequestBuilder) -> Result<Response, GoosedError> {
        let mut tried = 0;
        loop {
            let response = request().send().await.map_err(|error| goosed_connection_trouble(&error))?;
            let status = response.status().as_u16();
            if response.status().is_success() {
                return Ok(response);
            }
            let Some(pause) = goosed_status_retry_pause(status, tried) else {
                let body = read_goosed_text(response, MAX_REFUSAL_BYTES).await.unwrap_or_default();
                if status >= 500 {
                    tracing::error!(status, path, body, "goose failed");
                }
                return Err(GoosedError::from_status(status, &body));
            };
            let pause = self.unit.mul_f64(pause.as_secs_f64());
            tracing::debug!(status, path, ?pause, "goose is asked again");
            tokio::time::sleep(pause).await;
            tried += 1;
        }
    }
}

/// A body as JSON; goose answers some requests with nothing, and some with plain words.
async fn read_goosed_json(response: Response) -> Result<Value, GoosedError> {
    let body = read_goosed_text(response, MAX_BODY_BYTES).await?;
    Ok(serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

async fn read_goosed_text(mut response: Response, limit: usize) -> Result<String, GoosedError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| goosed_connection_trouble(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > limit {
            return Err(GoosedError::Unreadable("it is too long".to_owned()));
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// An error and what it came from, without the address.
pub(super) fn goosed_connection_trouble(error: &reqwest::Error) -> GoosedError {
    let mut texts = vec![if error.is_timeout() { "no answer in time" } else { "no connection" }.to_owned()];
    let mut source = error.source();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    GoosedError::Unavailable(texts.join(": "))
}
