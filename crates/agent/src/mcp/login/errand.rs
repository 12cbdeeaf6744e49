//! What a login asks of the network. A server names the addresses: it may not send us to this machine and its networks.

use std::time::Duration;

use reqwest::{Client, Url, redirect};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};

use super::super::spec::Reach;
use crate::tools::{Blocked, Guard};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A longer answer is not read.
const LARGEST: usize = 256 << 10;

/// Fetches for a login. Redirects are not followed.
pub(super) struct Errands {
    guard: Option<Guard>,
}

impl Errands {
    /// For the login of a server at this address. One that lies in a network of ours may name others in it.
    pub(super) async fn new(url: &Url, reach: &Reach) -> Self {
        match reach {
            Reach::Guarded(guard) => Self { guard: Some(guard.clone()) },
            Reach::Anywhere => Self::near(url, Guard::default()).await,
        }
    }

    async fn near(url: &Url, guard: Guard) -> Self {
        let private = matches!(guard.addresses(url).await, Err(Blocked::Private(_)));
        Self { guard: (!private).then_some(guard) }
    }

    async fn fetch(&self, request: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request.request)?;
        let mut client = Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE);
        if let Some(guard) = &self.guard {
            let addresses = guard.addresses(request.url()).await?;
            client = client.no_proxy().resolve_to_addrs(request.url().host_str().unwrap_or_default(), &addresses);
        }
        let mut response = client.build()?.execute(request).await?;
        let mut answer = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > LARGEST {
                return Err(format!("answer is longer than {LARGEST} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.body(body)?)
    }
}

impl OAuthHttpClient for Errands {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.fetch(request))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn only_a_server_near_us_may_name_others_near_us() {
        let near = Errands::new(&Url::parse("http://127.0.0.1:9/mcp").unwrap(), &Reach::Anywhere).await;
        assert!(near.guard.is_none());
        let far = Errands::new(&Url::parse("http://93.184.215.14/mcp").unwrap(), &Reach::Anywhere).await;
        let guard = far.guard.unwrap();
        let metadata = Url::parse("http://169.254.169.254/.well-known/oauth-authorization-server").unwrap();
        assert!(matches!(guard.addresses(&metadata).await, Err(Blocked::Private(_))));
        let guarded = Reach::Guarded(Guard::default());
        assert!(Errands::new(&Url::parse("http://127.0.0.1:9/mcp").unwrap(), &guarded).await.guard.is_some());
    }
}
