//! The login of a program without a browser (RFC 8628): a person enters a code on another device while this one polls.

use std::time::{Duration, SystemTime};

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::http::{OidcHttp, OidcHttpError};
use super::keys::discover_oidc_issuer;
use super::oidc_unix_seconds;

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long to wait between two polls if the issuer does not say, and how much longer each time it says `slow_down`.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two polls, and the longest.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// How long a code is good if the issuer does not say.
const CODE_TTL: Duration = Duration::from_secs(600);
/// Nobody is waited for longer than this, whatever the issuer says.
const MAX_CODE_TTL: Duration = Duration::from_secs(60 * 60);
/// A token that ends sooner than this is refreshed before it is used.
const REFRESH_BEFORE: u64 = 60;

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("the identity provider {0}")]
    Http(#[from] OidcHttpError),
    #[error("the identity provider offers no device login: {0}")]
    NoDeviceLogin(String),
    #[error("the login was declined")]
    Declined,
    #[error("the code has expired before anybody entered it")]
    CodeExpired,
    #[error("the login has ended, log in again")]
    Ended,
    #[error("the identity provider refuses: {0}")]
    Refused(String),
}

/// What a server says of how to log in to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLogin {
    pub issuer: String,
    pub client_id: String,
    pub audience: String,
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl ServerLogin {
    /// True if its tokens are made out to the server at this address: the audience is an address of the same origin.
    pub fn is_made_out_to(&self, server: &str) -> bool {
        match (Url::parse(&self.audience), Url::parse(server)) {
            (Ok(audience), Ok(server)) => audience.origin().is_tuple() && audience.origin() == server.origin(),
            (Ok(_) | Err(_), _) => false,
        }
    }
}

/// What the issuer gave, and how to get it anew.
#[derive(Clone, Serialize, Deserialize)]
pub struct LoginTokens {
    pub login: ServerLogin,
    token_endpoint: String,
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    /// Seconds since 1970; absent: the issuer does not say.
    #[serde(default)]
    expires_at: Option<u64>,
}

/// A login that waits for a person.
#[derive(Debug)]
pub struct DeviceLogin {
    http: OidcHttp,
    login: ServerLogin,
    token_endpoint: String,
    device_code: String,
    /// What the person enters.
    pub user_code: String,
    /// Where.
    pub verification_uri: String,
    /// Where with the code already filled in, if the issuer offers that.
    pub verification_uri_complete: Option<String>,
    interval: Duration,
    expires_in: Duration,
}

impl DeviceLogin {
    /// Asks the issuer for a code.
    pub async fn start(login: ServerLogin) -> Result<Self, LoginError> {
        let http = OidcHttp::new(&login.issuer)?;
        let found = discover_oidc_issuer(&http, &login.issuer).await?;
        let endpoint = |name: &str| found[name].as_str().map(str::to_owned);
        let (Some(device), Some(token_endpoint)) =
            (endpoint("device_authorization_endpoint"), endpoint("token_endpoint"))
        else {
            return Err(LoginError::NoDeviceLogin(login.issuer));
        };
        let scopes = login.scopes.join(" ");
        let mut fields = vec![("client_id", login.client_id.as_str()), ("scope", scopes.as_str())];
        fields.extend(audience_fields(&login.audience));
        let (status, answer) = http.post_form(&device, &fields).await?;
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        let (Some(device_code), Some(user_code), Some(verification_uri)) =
            (text("device_code"), text("user_code"), text("verification_uri"))
        else {
            return Err(LoginError::Refused(oauth_error_text(status, &answer)));
        };
        let (interval, expires_in) = poll_times(&answer);
        let verification_uri_complete = text("verification_uri_complete");
        Ok(Self {
            http,
            login,
            token_endpoint,
            device_code,
            user_code,
            verification_uri,
            verification_uri_complete,
            interval,
            expires_in,
        })
    }

    /// Polls until the person has decided or the code is too old.
    pub async fn wait(self) -> Result<LoginTokens, LoginError> {
        let until = tokio::time::Instant::now() + self.expires_in;
        let mut interval = self.interval;
        loop {
            if tokio::time::Instant::now() + interval > until {
                return Err(LoginError::CodeExpired);
            }
            tokio::time::sleep(interval).await;
            let mut fields = vec![
                ("grant_type", DEVICE_GRANT),
                ("device_code", self.device_code.as_str()),
                ("client_id", self.login.client_id.as_str()),
            ];
            fields.extend(audience_fields(&self.login.audience));
            let (status, answer) = match self.http.post_form(&self.token_endpoint, &fields).await {
                // A connection that breaks is no answer: RFC 8628 wants the next try to come later.
                Err(OidcHttpError::Unreachable { .. }) => {
                    interval = (interval * 2).min(MAX_POLL_INTERVAL);
                    continue;
                }
                sent => sent?,
            };
            match answer["error"].as_str() {
                None => return LoginTokens::from_answer(self.login, self.token_endpoint, status, &answer),
                Some("authorization_pending") => {}
                Some("slow_down") => interval = (interval + POLL_INTERVAL).min(MAX_POLL_INTERVAL),
                Some("access_denied") => return Err(LoginError::Declined),
                Some("expired_token") => return Err(LoginError::CodeExpired),
                Some(_) => return Err(LoginError::Refused(oauth_error_text(status, &answer))),
            }
        }
    }
}

impl LoginTokens {
    fn from_answer(
        login: ServerLogin,
        token_endpoint: String,
        status: u16,
        answer: &Value,
    ) -> Result<Self, LoginError> {
        let Some(access_token) = answer["access_token"].as_str().map(str::to_owned) else {
            return Err(LoginError::Refused(oauth_error_text(status, answer)));
        };
        let now = oidc_unix_seconds(SystemTime::now());
        let expires_at = answer["expires_in"].as_u64().map(|seconds| now.saturating_add(seconds));
        let refresh_token = answer["refresh_token"].as_str().map(str::to_owned);
        Ok(Self { login, token_endpoint, access_token, refresh_token, expires_at })
    }

    /// The token to send to the server.
    pub fn access_token(&self) -> &str {
        &self.access_token
    }

    /// True if it has to be refreshed before it is used.
    pub fn is_ending(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|until| until <= oidc_unix_seconds(now).saturating_add(REFRESH_BEFORE))
    }

    /// New tokens for these.
    pub async fn refresh(self) -> Result<Self, LoginError> {
        let Some(refresh_token) = self.refresh_token else { return Err(LoginError::Ended) };
        let http = OidcHttp::new(&self.login.issuer)?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.as_str()),
            ("client_id", self.login.client_id.as_str()),
        ];
        fields.extend(audience_fields(&self.login.audience));
        let (status, answer) = http.post_form(&self.token_endpoint, &fields).await?;
        if answer["error"].as_str() == Some("invalid_grant") {
            return Err(LoginError::Ended);
        }
        let fresh = Self::from_answer(self.login, self.token_endpoint, status, &answer)?;
        // An issuer that gives no new one lets the old one count on.
        let refresh_token = fresh.refresh_token.or(Some(refresh_token));
        Ok(Self { refresh_token, ..fresh })
    }
}

impl std::fmt::Debug for LoginTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginTokens").field("login", &self.login).finish_non_exhaustive()
    }
}

/// How often to poll and for how long, within limits.
fn poll_times(answer: &Value) -> (Duration, Duration) {
    let seconds = |name: &str, default: Duration| answer[name].as_u64().map_or(default, Duration::from_secs);
    let interval = seconds("interval", POLL_INTERVAL).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
    (interval, seconds("expires_in", CODE_TTL).min(MAX_CODE_TTL))
}

/// Issuers name the audience differently: `resource` is RFC 8707's word and must be an address, `audience` is older.
fn audience_fields(audience: &str) -> Vec<(&'static str, &str)> {
    let is_address = audience.starts_with("https://") || audience.starts_with("http://");
    let resource = is_address.then_some(("resource", audience));
    resource.into_iter().chain([("audience", audience)]).collect()
}

fn oauth_error_text(status: u16, answer: &Value) -> String {
    let said = answer["error_description"].as_str().or(answer["error"].as_str());
    said.map_or_else(|| format!("status {status}"), |said| said.chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_made_out_to_a_server_by_its_origin() {
        for (audience, server, fits) in [
            ("https://agents.example.com", "https://agents.example.com", true),
            ("https://agents.example.com/api", "https://AGENTS.example.com:443/", true),
            ("https://agents.example.com", "https://agents.example.com:8443", false),
            ("https://agents.example.com", "http://agents.example.com", false),
            ("https://agents.example.com", "https://other.example.com", false),
            ("https://agents.example.com", "https://agents.example.com@other.example.com", false),
            ("gander", "https://agents.example.com", false),
            ("urn:gander", "urn:gander", false),
        ] {
            let login = ServerLogin {
                issuer: "https://login.example.com".to_owned(),
                client_id: "cli".to_owned(),
                audience: audience.to_owned(),
                scopes: Vec::new(),
            };
            assert_eq!(login.is_made_out_to(server), fits, "{audience} {server}");
        }
    }

    #[test]
    fn an_issuer_makes_nobody_poll_without_a_pause_or_for_ever() {
        let times =
            |interval: u64, expires_in: u64| poll_times(&json!({"interval": interval, "expires_in": expires_in}));
        assert_eq!(times(2, 30), (Duration::from_secs(2), Duration::from_secs(30)));
        assert_eq!(times(0, 0), (MIN_POLL_INTERVAL, Duration::ZERO));
        assert_eq!(times(u64::MAX, u64::MAX), (MAX_POLL_INTERVAL, MAX_CODE_TTL));
        assert_eq!(poll_times(&json!({})), (POLL_INTERVAL, CODE_TTL));
    }
}
