//! Who may do what: every verb of every protocol with every scope, and what one principal sees of another, over the wire.
#![allow(clippy::unwrap_used)]

mod a2a;
mod acp;
mod answers;
mod belongings;
mod limits;
mod owned;
mod policy;
mod routes;
mod rows;
pub(crate) mod socket;
mod tenant_agents;
mod tenant_methods;
mod tenant_streams;
mod tenant_things;
mod tenants;

use gander_domain::caller::Scope;
use gander_services::token;
use gander_testkit::harness::PATIENCE;
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::Value;

crate::served::test_server!(crate::served::CONFORMANCE_AGENTS);

/// Every set of scopes that is told apart; every token reads.
const SETS: [(&str, &[Scope]); 6] = [
    ("read", &[]),
    ("prompt", &[Scope::Prompt]),
    ("approve", &[Scope::Approve]),
    ("admin", &[Scope::Admin]),
    ("prompt+approve", &[Scope::Prompt, Scope::Approve]),
    ("full", &[Scope::Prompt, Scope::Approve, Scope::Admin]),
];

/// What a refusal for want of authority says, in every protocol.
const DENIED: [&str; 3] = ["needs the scope", "needs a token with the scope", "for the owner of the server alone"];

impl TestServer {
    /// The token of this principal, with these scopes from now on.
    fn token(&self, name: &str, scopes: &[Scope]) -> String {
        token::revoke_token(&self.config.paths, name).ok();
        token::add_token(&self.config.paths, name, scopes, None).unwrap().expose_secret().to_owned()
    }

    /// Status and text of an answer.
    async fn ask(&self, token: Option<&str>, method: &Method, path: &str, body: Option<&Value>) -> (u16, String) {
        let mut request = self.client.request(method.clone(), self.url(path)).header("a2a-version", "1.0");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = self.sent(request).await;
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Comes back as any client does that is told to: how busy the disk is, is not what these tests are about.
    async fn sent(&self, request: reqwest::RequestBuilder) -> reqwest::Response {
        self.sent_until_taken(request).await.0
    }

    /// The same, and how often it was sent.
    async fn sent_until_taken(&self, request: reqwest::RequestBuilder) -> (reqwest::Response, u32) {
        let again = async || {
            for count in 1.. {
                match request.try_clone().unwrap().send().await {
                    Ok(response) if response.status() != 503 => return (response, count),
                    Ok(_) => {}
                    // A connection that was idle for `limits.header_time` is closed, perhaps just when it is used again.
                    Err(error) => assert!(error.is_request(), "{error:?}"),
                }
            }
            unreachable!("it is sent until it is taken")
        };
        tokio::time::timeout(PATIENCE, again()).await.unwrap()
    }

    async fn post(&self, token: &str, path: &str, body: &Value) -> (u16, String) {
        self.ask(Some(token), &Method::POST, path, Some(body)).await
    }

    /// What must succeed. What was made by a request whose answer was lost is there already.
    async fn ok(&self, token: &str, path: &str, body: &Value) -> Value {
        let request = self.client.post(self.url(path)).header("a2a-version", "1.0").bearer_auth(token).json(body);
        let (response, count) = self.sent_until_taken(request).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        assert!(status < 300 || (status == 409 && count > 1), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }
}

fn is_denied(text: &str) -> bool {
    DENIED.iter().any(|words| text.contains(words))
}

/// True if a token with these scopes has all that are needed.
fn suffices(scopes: &[Scope], needs: &[Scope]) -> bool {
    needs.iter().all(|needed| *needed == Scope::Read || scopes.contains(needed))
}
