//! One notification: looked up, checked and dialled at once, never redirected.

use std::time::Duration;

use gander_tools::Guard;
use gander_wire::a2a::PushConfig;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, StatusCode, Url, redirect};
use serde_json::Value;

/// A receiver that takes longer has not taken it.
const POST_TIMEOUT: Duration = Duration::from_secs(15);

/// What became of a notification.
pub(super) enum PostOutcome {
    /// The receiver has it.
    Taken,
    /// The receiver never wants any again.
    Unwanted,
    /// Try again later.
    Failed(String),
}

/// Sends a notification.
pub(super) async fn post_notification(guard: &Guard, config: &PushConfig, id: &str, body: &Value) -> PostOutcome {
    match try_http_post(guard, config, id, body).await {
        Ok(status) if status.is_success() => PostOutcome::Taken,
        Ok(StatusCode::GONE) => PostOutcome::Unwanted,
        Ok(status) => PostOutcome::Failed(status.to_string()),
        Err(reason) => PostOutcome::Failed(reason),
    }
}

async fn try_http_post(guard: &Guard, config: &PushConfig, id: &str, body: &Value) -> Result<StatusCode, String> {
    let url = Url::parse(&config.url).map_err(|error| error.to_string())?;
    let addresses = guard.allowed_addresses(&url).await.map_err(|blocked| blocked.to_string())?;
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
        .timeout(POST_TIMEOUT)
        .user_agent(concat!("gander/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())?;
    let mut request = client.post(url).header(CONTENT_TYPE, "application/json").header("Idempotency-Key", id);
    request = request.header("A2A-Version", "1.0");
    if let Some(token) = &config.token {
        request = request.header("X-A2A-Notification-Token", token);
    }
    if let Some(authentication) = &config.authentication {
        let credentials = authentication.credentials.as_deref().unwrap_or_default();
        request = request.header(AUTHORIZATION, format!("{} {credentials}", authentication.scheme));
    }
    let response = request.body(body.to_string()).send().await.map_err(|error| error.without_url().to_string())?;
    Ok(response.status())
}
