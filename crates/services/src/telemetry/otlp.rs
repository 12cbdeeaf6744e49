//! OTLP over HTTP, in its JSON form, to a collector that the settings name.
//!
//! The guard against private networks does not stand here: it is the owner who chose the collector, often on the same machine.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use reqwest::{Client, Url, header, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::span::otlp_attribute;

const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that is looked at: it says how much was rejected.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// The base address of a collector: `/v1/traces` and `/v1/logs` are below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OtlpAddress(String);

impl FromStr for OtlpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.filter(|url| url.username().is_empty() && url.password().is_none() && url.query().is_none());
        match url {
            Some(_) => Ok(Self(text.trim_end_matches('/').to_owned())),
            None => Err(format!("not an address such as http://127.0.0.1:4318, without a user or a query: {text}")),
        }
    }
}

impl TryFrom<String> for OtlpAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<OtlpAddress> for String {
    fn from(address: OtlpAddress) -> Self {
        address.0
    }
}

impl fmt::Display for OtlpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a collector wants to see, such as a key. Written as `OTEL_EXPORTER_OTLP_HEADERS` is: `name=value,name=value`.
#[derive(Clone, Debug, Default)]
pub struct OtlpHeaders(Vec<(String, SecretString)>);

impl OtlpHeaders {
    /// Values may be percent-encoded; what is no header is left out.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        let decoded = pairs.map(|(name, value)| (name.trim().to_owned(), percent_decoded(value.trim())));
        Self(decoded.filter(|(name, _)| !name.is_empty()).map(|(name, value)| (name, value.into())).collect())
    }

    /// The values, which nobody may see. Also without the word in front that says what kind they are.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let values = self.0.iter().map(|(_, value)| value.expose_secret());
        values.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, key)| key)]).flatten()
    }
}

fn percent_decoded(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => (decoded.push(code), at += 3),
            None => (decoded.push(*byte), at += 1),
        };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Why a collector did not take something.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// It may take it later.
    #[error("{0}")]
    Retryable(String),
    /// It never will.
    #[error("{0}")]
    Refused(String),
}

/// Sends to one collector.
#[derive(Clone, Debug)]
pub struct OtlpClient {
    client: Client,
    address: OtlpAddress,
    headers: OtlpHeaders,
    /// Who sends: the message `Resource`.
    resource: Value,
}

impl OtlpClient {
    /// For this collector; the instance tells processes apart.
    pub fn new(address: OtlpAddress, headers: OtlpHeaders, service: &str, instance: &str) -> reqwest::Result<Self> {
        // Does nothing if the program has chosen one already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let builder = Client::builder().redirect(redirect::Policy::none()).timeout(SEND_TIMEOUT);
        let is_local = Url::parse(&address.0).is_ok_and(|url| crate::oidc::is_loopback_url(&url));
        let client = if is_local { builder.no_proxy() } else { builder }.build()?;
        let facts = [("service.name", service), ("service.version", crate::VERSION), ("service.instance.id", instance)];
        let attributes = facts.map(|(key, value)| otlp_attribute(key, &json!(value)));
        Ok(Self { client, address, headers, resource: json!({ "attributes": attributes }) })
    }

    /// Sends spans; says how many of them the collector rejected.
    pub async fn send_spans(&self, spans: &[Value]) -> Result<u64, OtlpError> {
        let body = json!({ "resourceSpans": [{ "resource": self.resource, "scopeSpans": [{ "scope": otlp_scope(), "spans": spans }] }] });
        let answer = self.send("/v1/traces", &body).await?;
        Ok(rejected_count(&answer, "rejectedSpans"))
    }

    /// Sends log records; says how many of them the collector rejected.
    pub async fn send_log_records(&self, records: &[Value]) -> Result<u64, OtlpError> {
        let body = json!({ "resourceLogs": [{ "resource": self.resource, "scopeLogs": [{ "scope": otlp_scope(), "logRecords": records }] }] });
        let answer = self.send("/v1/logs", &body).await?;
        Ok(rejected_count(&answer, "rejectedLogRecords"))
    }

    async fn send(&self, path: &str, body: &Value) -> Result<Value, OtlpError> {
        let unreachable = |error: reqwest::Error| OtlpError::Retryable(error.without_url().to_string());
        let mut request = self.client.post(format!("{}{path}", self.address)).body(body.to_string());
        request = request.header(header::CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers.0 {
            request = request.header(name, value.expose_secret());
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, mut text) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if text.len() + chunk.len() > MAX_RESPONSE_BYTES {
                break;
            }
            text.extend_from_slice(&chunk);
        }
        match status.as_u16() {
            200..=299 => Ok(serde_json::from_slice(&text).unwrap_or_default()),
            429 | 502 | 503 | 504 => Err(OtlpError::Retryable(format!("answered with the status {status}"))),
            _ => Err(OtlpError::Refused(format!("answered with the status {status}"))),
        }
    }
}

fn otlp_scope() -> Value {
    json!({ "name": "gander", "version": crate::VERSION })
}

/// The count is a text in protobuf's JSON; some collectors write a number.
fn rejected_count(answer: &Value, name: &str) -> u64 {
    let count = &answer["partialSuccess"][name];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_neither_user_nor_query() {
        assert_eq!(
            "http://127.0.0.1:4318/".parse::<OtlpAddress>().map(String::from),
            Ok("http://127.0.0.1:4318".into())
        );
        for bad in ["127.0.0.1:4318", "ftp://h/", "https://u:p@h/", "https://h/?key=1", ""] {
            assert!(bad.parse::<OtlpAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_are_decoded_and_secret() {
        let headers = OtlpHeaders::parse("authorization=Bearer%20abc%2Cd, x-team = blue,broken,=none,half=%2");
        let known: Vec<_> = headers.0.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
        assert_eq!(known, [("authorization", "Bearer abc,d"), ("x-team", "blue"), ("half", "%2")]);
        assert_eq!(headers.secrets().collect::<Vec<_>>(), ["Bearer abc,d", "abc,d", "blue", "%2"]);
        assert!(!format!("{headers:?}").contains("abc"));
    }

    #[test]
    fn what_a_collector_rejected_is_a_text_or_a_number() {
        let said =
            |count: Value| rejected_count(&json!({ "partialSuccess": { "rejectedSpans": count } }), "rejectedSpans");
        assert_eq!((said(json!("3")), said(json!(4)), said(json!(null))), (3, 4, 0));
    }
}
