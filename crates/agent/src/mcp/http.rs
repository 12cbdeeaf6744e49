//! A server at an address: streamable HTTP.

use std::collections::HashMap;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::spec::Reach;

/// A transport to this address, or why there is none.
pub(super) async fn transport(
    url: &str,
    headers: &[(String, String)],
    reach: &Reach,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let url = Url::parse(url).map_err(|error| format!("not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only http and https addresses are used: {}", url.scheme()));
    }
    let client = client(&url, reach).await?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = headers.iter().map(header).collect::<Result<HashMap<_, _>, String>>()?;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Redirects are not followed: they would carry the headers elsewhere. Under a guard only what was looked up and
/// found public is dialled.
async fn client(url: &Url, reach: &Reach) -> Result<Client, String> {
    let client = Client::builder().redirect(redirect::Policy::none()).pool_max_idle_per_host(0);
    let client = match reach {
        Reach::Anywhere => client,
        Reach::Guarded(guard) => {
            let addresses = guard.addresses(url).await.map_err(|blocked| blocked.to_string())?;
            client.no_proxy().resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
        }
    };
    client.build().map_err(|error| error.to_string())
}

fn header((name, value): &(String, String)) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("not a header's name: {name}"))?;
    let mut value: HeaderValue = value.parse().map_err(|_| format!("not a value for the header: {name}"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
