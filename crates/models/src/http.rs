//! A model behind HTTP: one request, an answer that streams, and attempts until the first event.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use reqwest::{Client, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::timeout;

use super::failure::{self, Hints};
use super::reading::Reading;
use super::retry::{self, Retry};
use super::wire::{Profile, Wire};
use super::{Model, ModelError, ModelInfo, ModelStream, Request, Written};

/// Where and how a provider is asked.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// What it speaks.
    pub wire: Wire,
    /// The whole address.
    pub url: String,
    /// How it is shown the key.
    pub auth: Auth,
    /// The key; some need none.
    pub key: Option<SecretString>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The variables that may hold the key, for messages.
    pub key_variables: Vec<String>,
}

/// How a provider is shown the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// `Authorization: Bearer`.
    #[default]
    Bearer,
    /// `x-api-key`.
    XApiKey,
}

/// How long and how much is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the answer begins.
    pub header: Duration,
    /// Between two signs of life.
    pub idle: Duration,
    /// Between two events, however lively the connection.
    pub silence: Duration,
    /// Bytes of one answer.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            silence: Duration::from_secs(900),
            bytes: 128 * 1024 * 1024,
        }
    }
}

/// A model behind HTTP.
pub struct HttpModel {
    profile: Profile,
    endpoint: Endpoint,
    limits: Limits,
    retry: Retry,
    client: Client,
    written: Written,
}

impl HttpModel {
    /// Prepares to ask; nothing is sent yet.
    pub fn new(profile: Profile, endpoint: Endpoint, limits: Limits, retry: Retry) -> Result<Self, ModelError> {
        let client = client(&endpoint.url, limits.connect).map_err(|error| {
            ModelError::Network(format!("cannot prepare a connection to {}: {}", profile.info.provider, causes(&error)))
        })?;
        Ok(Self { profile, endpoint, limits, retry, client, written: Written::default() })
    }

    /// One attempt, up to the first events.
    async fn attempt(&self, body: Bytes) -> Result<ModelStream, ModelError> {
        let response = self.send(body).await?;
        let decoder = self.endpoint.wire.decoder(&self.profile.info);
        let mut reading = Reading::new(response, decoder, self.limits.clone(), self.profile.info.provider.clone());
        let first = reading.batch().await.transpose()?.unwrap_or_default();
        let rest = stream::unfold(reading, |mut reading| async move { Some((reading.batch().await?, reading)) });
        Ok(ModelStream::new(stream::iter([Ok(first)]).chain(rest)))
    }

    async fn send(&self, body: Bytes) -> Result<Response, ModelError> {
        let Endpoint { url, auth, key, headers, .. } = &self.endpoint;
        let mut request = self.client.post(url).header("content-type", "application/json").body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = match (key, auth) {
            (Some(key), Auth::Bearer) => request.bearer_auth(key.expose_secret()),
            (Some(key), Auth::XApiKey) => request.header("x-api-key", sensitive(key)?),
            (None, Auth::Bearer | Auth::XApiKey) => request,
        };
        let provider = &self.profile.info.provider;
        let response = timeout(self.limits.header, request.send()).await.map_err(|_| {
            let secs = self.limits.header.as_secs_f64();
            ModelError::TimedOut(format!("{provider} did not begin to answer in time, seconds: {secs}"))
        })?;
        let response = response
            .map_err(|error| ModelError::Network(format!("cannot reach {provider} at {url}: {}", causes(&error))))?;
        if response.status() == StatusCode::OK { Ok(response) } else { Err(self.refusal(response).await) }
    }

    async fn refusal(&self, mut response: Response) -> ModelError {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait = retry::retry_after(header, Timestamp::now());
        let status = response.status().as_u16();
        let mut body = Vec::new();
        // What came before a failure is the explanation then.
        while let Ok(Ok(Some(bytes))) = timeout(self.limits.connect, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > 64 * 1024 {
                break;
            }
        }
        let hints = Hints {
            provider: self.profile.info.provider.clone(),
            key_variables: self.endpoint.key_variables.clone(),
            url: self.endpoint.url.clone(),
        };
        failure::of_status(&hints, status, self.without_key(&body).as_bytes(), wait)
    }

    /// A provider may quote what it was sent.
    fn without_key(&self, body: &[u8]) -> String {
        let body = String::from_utf8_lossy(body);
        match self.endpoint.key.as_ref().map(ExposeSecret::expose_secret) {
            Some(key) if !key.is_empty() => body.replace(key, "***"),
            Some(_) | None => body.into_owned(),
        }
    }
}

#[async_trait]
impl Model for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.profile.info
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError> {
        let body = Bytes::from(self.endpoint.wire.encode_after(&request, &self.profile, &self.written));
        let attempt = || self.attempt(body.clone());
        retry::persist(&self.retry, self.info(), attempt).await
    }
}

/// An error and what it came from, without the address.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut texts = vec![if error.is_timeout() { "no connection in time".to_owned() } else { kind(error).to_owned() }];
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    texts.join(": ")
}

/// A client for this address. Loopback needs neither a proxy nor certificates.
pub(super) fn client(url: &str, connect: Duration) -> Result<Client, reqwest::Error> {
    let builder = Client::builder()
        .user_agent(concat!("gander/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the key to an address nobody chose.
        .redirect(redirect::Policy::none())
        .connect_timeout(connect);
    let host = url.strip_prefix("http://").unwrap_or_default();
    if ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local)) {
        return builder.no_proxy().tls_certs_only([]).build();
    }
    builder.build()
}

fn kind(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "no connection"
    } else if error.is_builder() {
        "the address or a header is not valid"
    } else {
        "the connection broke"
    }
}

fn sensitive(key: &SecretString) -> Result<reqwest::header::HeaderValue, ModelError> {
    let value = reqwest::header::HeaderValue::from_str(key.expose_secret());
    let mut value =
        value.map_err(|_| ModelError::Unauthorized("the key holds characters no header can carry".into()))?;
    value.set_sensitive(true);
    Ok(value)
}
