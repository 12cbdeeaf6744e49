//! What a login asks of the network. A server names the addresses: it may not send us to this machine and its networks.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use gander_tools::Guard;
use reqwest::{Client, Url, redirect};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};

use super::super::spec::Reach;

/// How long one answer may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A longer answer is not read.
const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// Fetches for a login. Redirects are not followed.
pub(super) struct OAuthHttp {
    guard: Guard,
}

impl OAuthHttp {
    /// For the login of a server at this address.
    pub(super) fn new(url: &Url, reach: &Reach) -> Self {
        match reach {
            Reach::Guarded(guard) => Self { guard: guard.clone() },
            Reach::Anywhere => Self { guard: Guard::new(nearby_oauth_host(url)) },
        }
    }

    async fn send_request(&self, request: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request.request)?;
        let addresses = self.guard.allowed_addresses(request.url()).await?;
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(REQUEST_TIMEOUT);
        let client = client.no_proxy().resolve_to_addrs(request.url().host_str().unwrap_or_default(), &addresses);
        let mut response = client.build()?.execute(request).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(format!("answer is longer than {MAX_RESPONSE_BYTES} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.body(body)?)
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send_request(request))
    }
}

/// The host of a server that its owner put on this machine or a network of theirs, in plain sight: this one may be
/// asked. What a name leads to is no such word, and next to a machine on its own link lies what tells its secrets.
fn nearby_oauth_host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let fine = inner.eq_ignore_ascii_case("localhost") || inner.parse().is_ok_and(is_nearby_oauth_address);
    fine.then(|| host.to_owned())
}

fn is_nearby_oauth_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address == Ipv6Addr::LOCALHOST || address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn for_server(url: &str) -> OAuthHttp {
        OAuthHttp::new(&Url::parse(url).unwrap(), &Reach::Anywhere)
    }

    fn lets(http: &OAuthHttp, url: &str) -> bool {
        http.guard.check_literal_host(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn a_server_near_us_may_name_itself_and_nobody_else_near_us() {
        let near = for_server("http://127.0.0.1:9/mcp");
        assert!(lets(&near, "http://127.0.0.1:10/token") && lets(&near, "https://93.184.215.14/token"));
        assert!(!lets(&near, "http://10.0.0.1/token") && !lets(&near, "http://169.254.169.254/token"));
        assert!(lets(&for_server("http://[::1]:9/mcp"), "http://[::1]:10/token"));
        assert!(!lets(&for_server("http://93.184.215.14/mcp"), "http://127.0.0.1/token"));
    }

    #[test]
    fn what_lies_on_our_own_link_is_never_asked() {
        for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"] {
            let url = format!("http://{host}/mcp");
            assert!(!lets(&for_server(&url), &url), "{host}");
        }
    }

    /// Leads every name to this machine.
    struct Home;

    #[async_trait::async_trait]
    impl gander_tools::Resolver for Home {
        async fn resolve(&self, _: &str, port: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
            Ok(vec![([127, 0, 0, 1], port).into()])
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_us_is_not_asked() {
        let resolved = |url: &str| for_server(url).guard.with_resolver(std::sync::Arc::new(Home));
        let evil = Url::parse("http://evil.example/mcp").unwrap();
        assert!(resolved(evil.as_str()).allowed_addresses(&evil).await.is_err());
        let home = Url::parse("http://localhost:9/mcp").unwrap();
        assert!(resolved(home.as_str()).allowed_addresses(&home).await.is_ok());
    }

    #[test]
    fn one_that_a_stranger_named_may_not_even_name_itself() {
        let url = Url::parse("http://127.0.0.1:9/mcp").unwrap();
        let guarded = OAuthHttp::new(&url, &Reach::Guarded(Guard::default()));
        assert!(!lets(&guarded, url.as_str()));
    }
}
