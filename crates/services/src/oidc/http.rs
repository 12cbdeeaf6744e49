//! Requests to the issuer that the settings name, and to the endpoints that it names itself.
//!
//! The guard against private networks does not stand here: it is the owner who chose the issuer, often in a network of
//! their own. What it names must be as safe as itself: with TLS, or on this machine if the issuer is.

use std::time::Duration;

use reqwest::{Client, Method, Url, header, redirect};
use serde_json::Value;

use super::settings::is_loopback_url;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is read: key sets have some kilobytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Why an answer could not be had.
#[derive(Debug, thiserror::Error)]
pub enum OidcHttpError {
    #[error("cannot be reached, {reason}: {url}")]
    Unreachable { url: String, reason: String },
    #[error("answered with the status {status}: {url}")]
    Status { url: String, status: u16 },
    #[error("did not answer with JSON of at most 256 KiB: {url}")]
    NotJson { url: String },
    #[error("is neither https nor on this machine as its issuer is: {url}")]
    Unsafe { url: String },
}

/// Sends requests to one issuer.
#[derive(Clone, Debug)]
pub struct OidcHttp {
    client: Client,
    is_local: bool,
}

impl OidcHttp {
    /// For the issuer at this address.
    pub fn new(issuer: &str) -> Result<Self, OidcHttpError> {
        // Does nothing if the program has chosen one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let failed = |reason: String| OidcHttpError::Unreachable { url: issuer.to_owned(), reason };
        let is_local = Url::parse(issuer).is_ok_and(|url| is_loopback_url(&url));
        let builder = Client::builder()
            .user_agent(concat!("gander/", env!("CARGO_PKG_VERSION")))
            // A redirect would lead to an address that neither the owner nor the issuer has named.
            .redirect(redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT);
        let builder = if is_local { builder.no_proxy() } else { builder };
        Ok(Self { client: builder.build().map_err(|error| failed(error.to_string()))?, is_local })
    }

    /// One JSON value, if the answer says that all is well.
    pub async fn get_json(&self, url: &str) -> Result<Value, OidcHttpError> {
        let (status, value) = self.send(Method::GET, url, None).await?;
        if status != 200 {
            return Err(OidcHttpError::Status { url: url.to_owned(), status });
        }
        Ok(value)
    }

    /// Sends a form. Errors of OAuth are answers, with a status of their own.
    pub async fn post_form(&self, url: &str, fields: &[(&str, &str)]) -> Result<(u16, Value), OidcHttpError> {
        self.send(Method::POST, url, Some(encode_oidc_form(fields))).await
    }

    async fn send(&self, method: Method, url: &str, form: Option<String>) -> Result<(u16, Value), OidcHttpError> {
        let named = || url.to_owned();
        let parsed = Url::parse(url).map_err(|_| OidcHttpError::Unsafe { url: named() })?;
        if parsed.scheme() != "https" && !(self.is_local && parsed.scheme() == "http" && is_loopback_url(&parsed)) {
            return Err(OidcHttpError::Unsafe { url: named() });
        }
        let unreachable =
            |error: reqwest::Error| OidcHttpError::Unreachable { url: named(), reason: error_reason(&error) };
        let mut request = self.client.request(method, parsed).header(header::ACCEPT, "application/json");
        if let Some(form) = form {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(OidcHttpError::NotJson { url: named() });
            }
            body.extend_from_slice(&chunk);
        }
        match serde_json::from_slice(&body) {
            Ok(value) => Ok((status, value)),
            Err(_) if status >= 400 => Err(OidcHttpError::Status { url: named(), status }),
            Err(_) => Err(OidcHttpError::NotJson { url: named() }),
        }
    }
}

/// What lies at the bottom of an error. The address is named beside it.
fn error_reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn encode_oidc_form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").expect("a constant address");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}
