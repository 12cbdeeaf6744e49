//! A server at an address: streamable HTTP.

use std::collections::HashMap;
use std::error::Error;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use rmcp::service::ServiceError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthError, AuthorizationManager};
use rmcp::transport::streamable_http_client::{AuthRequiredError, StreamableHttpClientTransportConfig};

use super::login::{self, Keyring};
use super::spec::{Reach, Spec, Transport};

/// A transport to this address, or why there is none.
pub(super) async fn http_transport(
    spec: &Spec,
    keyring: &Keyring,
) -> Result<StreamableHttpClientTransport<AuthClient<Client>>, String> {
    let Transport::Http { url, headers, reach, .. } = &spec.transport else {
        return Err("a program has no address".to_owned());
    };
    let bearer = http_authorization_for_spec(spec, keyring).await?;
    let url = Url::parse(url).map_err(|error| format!("not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only http and https addresses are used: {}", url.scheme()));
    }
    let client = build_http_client(&url, reach).await?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = headers.iter().map(parse_http_header).collect::<Result<HashMap<_, _>, String>>()?;
    Ok(StreamableHttpClientTransport::with_client(AuthClient::new(client, bearer), config))
}

/// Whoever gives a token of their own needs no login.
async fn http_authorization_for_spec(spec: &Spec, keyring: &Keyring) -> Result<AuthorizationManager, String> {
    match spec.is_authorized() {
        true => login::login_authorization_from_keyring(spec, &Keyring::default()).await,
        false => login::login_authorization_from_keyring(spec, keyring).await,
    }
}

/// True if the server wants an authorization that it did not get.
pub(super) fn is_unauthorized_http(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let first: &(dyn Error + 'static) = error.error.as_ref();
    let mut chain = std::iter::successors(Some(first), |&error| error.source());
    chain.any(|error| {
        let unknown = matches!(error.downcast_ref(), Some(AuthError::AuthorizationRequired));
        unknown || error.is::<AuthRequiredError>()
    })
}

/// Redirects are not followed: they would carry the headers elsewhere. Under a guard only what was looked up and
/// found public is dialled.
async fn build_http_client(url: &Url, reach: &Reach) -> Result<Client, String> {
    let client = Client::builder().redirect(redirect::Policy::none()).pool_max_idle_per_host(0);
    let client = match reach {
        Reach::Anywhere => client,
        Reach::Guarded(guard) => {
            let addresses = guard.allowed_addresses(url).await.map_err(|blocked| blocked.to_string())?;
            client.no_proxy().resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
        }
    };
    client.build().map_err(|error| error.to_string())
}

fn parse_http_header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("not a header's name: {name}"))?;
    let mut value: HeaderValue = value.parse().map_err(|_| format!("not a value for the header: {name}"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
