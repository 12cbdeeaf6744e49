//! The address of an agent elsewhere, and what is sent along.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use reqwest::{ClientBuilder, redirect};

use super::pin::CertificatePin;
use super::{CONNECT_TIMEOUT, MAX_MESSAGE, send_net_request_expecting, unreachable_server_error};
use crate::LinkError;

/// The address of an agent, and what proves that one may use it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) pin: Option<CertificatePin>,
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

    pub(super) fn http_client(
        &self,
        version: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<reqwest::Client, LinkError> {
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
