//! A model behind HTTP: one request, an answer that streams, and attempts until the first event.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use reqwest::{Client, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::timeout;

use super::encoded_history::EncodedHistoryCache;
use super::failure::{self, FailureHints, describe_network_failure};
use super::profile::Profile;
use super::response_stream::ResponseStream;
use super::retry::{self, Retry};
use super::timeouts::Limits;
use super::wire::Wire;
use super::{Model, ModelError, ModelInfo, ModelStream, Request};

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

/// A model behind HTTP.
pub struct HttpModel {
    profile: Profile,
    endpoint: Endpoint,
    limits: Limits,
    retry: Retry,
    client: Client,
    encoded: EncodedHistoryCache,
}

impl HttpModel {
    /// Prepares to ask; nothing is sent yet.
    pub fn new(profile: Profile, endpoint: Endpoint, limits: Limits, retry: Retry) -> Result<Self, ModelError> {
        let client = build_model_http_client(&endpoint.url, limits.connect).map_err(|error| {
            ModelError::Network(format!(
                "cannot prepare a connection to {}: {}",
                profile.info.provider,
                describe_network_failure(&error)
            ))
        })?;
        Ok(Self { profile, endpoint, limits, retry, client, encoded: EncodedHistoryCache::default() })
    }

    /// One attempt, up to the first events.
    async fn start_stream(&self, body: Bytes) -> Result<ModelStream, ModelError> {
        let response = self.send_request(body).await?;
        let decoder = self.endpoint.wire.new_decoder(&self.profile.info);
        let mut reading =
            ResponseStream::new(response, decoder, self.limits.clone(), self.profile.info.provider.clone());
        let first = reading.next_batch().await.transpose()?.unwrap_or_default();
        let rest = stream::unfold(reading, |mut reading| async move { Some((reading.next_batch().await?, reading)) });
        Ok(ModelStream::new(stream::iter([Ok(first)]).chain(rest)))
    }

    async fn send_request(&self, body: Bytes) -> Result<Response, ModelError> {
        let Endpoint { url, auth, key, headers, .. } = &self.endpoint;
        let mut request = self.client.post(url).header("content-type", "application/json").body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = match (key, auth) {
            (Some(key), Auth::Bearer) => request.bearer_auth(key.expose_secret()),
            (Some(key), Auth::XApiKey) => request.header("x-api-key", sensitive_http_header(key)?),
            (None, Auth::Bearer | Auth::XApiKey) => request,
        };
        let provider = &self.profile.info.provider;
        let response = timeout(self.limits.header, request.send()).await.map_err(|_| {
            let secs = self.limits.header.as_secs_f64();
            ModelError::TimedOut(format!("{provider} did not begin to answer in time, seconds: {secs}"))
        })?;
        let response = response.map_err(|error| {
            ModelError::Network(format!("cannot reach {provider} at {url}: {}", describe_network_failure(&error)))
        })?;
        if response.status() == StatusCode::OK { Ok(response) } else { Err(self.read_error_response(response).await) }
    }

    async fn read_error_response(&self, mut response: Response) -> ModelError {
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
        let hints = FailureHints {
            provider: self.profile.info.provider.clone(),
            key_variables: self.endpoint.key_variables.clone(),
            url: self.endpoint.url.clone(),
        };
        failure::failure_from_status(&hints, status, self.redact_key(&body).as_bytes(), wait)
    }

    /// A provider may quote what it was sent.
    fn redact_key(&self, body: &[u8]) -> String {
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
        let body = Bytes::from(self.endpoint.wire.encode_with_cache(&request, &self.profile, &self.encoded));
        let attempt = || self.start_stream(body.clone());
        retry::retry_until_streaming(&self.retry, self.info(), attempt).await
    }
}

/// A client for this address. Loopback needs neither a proxy nor certificates.
pub(super) fn build_model_http_client(url: &str, connect: Duration) -> Result<Client, reqwest::Error> {
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

fn sensitive_http_header(key: &SecretString) -> Result<reqwest::header::HeaderValue, ModelError> {
    let value = reqwest::header::HeaderValue::from_str(key.expose_secret());
    let mut value =
        value.map_err(|_| ModelError::Unauthorized("the key holds characters no header can carry".into()))?;
    value.set_sensitive(true);
    Ok(value)
}
