//! `[auth.oidc]`: which issuer counts, for which audience, and what its claims mean here.

use std::collections::BTreeMap;
use std::time::Duration;

use gander_domain::caller::Scope;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::units::DurationSetting;

/// The longest difference of clocks that can be chosen: more would let tokens live on.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);

/// The section as it stands in the settings file. Without an issuer nothing of it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidcSection {
    /// Whose tokens count.
    #[serde(default)]
    pub issuer: Option<String>,
    /// For whom a token must be made out to count here.
    #[serde(default)]
    pub audience: Option<String>,
    /// How tokens may be signed.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// How far the issuer's clock may be off.
    pub clock_skew: DurationSetting,
    /// The claim that names the principal.
    pub principal_claim: String,
    /// Values of that claim that stand for the owner.
    pub owners: Vec<String>,
    /// The claim that holds scopes, roles or groups.
    pub scopes_claim: String,
    /// Which of its values give which scopes.
    pub scopes: BTreeMap<String, Vec<Scope>>,
    /// What every token of the issuer may do.
    pub default_scopes: Vec<Scope>,
    /// The claim that lists folders.
    #[serde(default)]
    pub roots_claim: Option<String>,
    /// The client of `gander login`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The scopes that it asks the issuer for.
    pub login_scopes: Vec<String>,
}

/// How a token is signed. Shared secrets and `none` are not among them, so that no public key is ever taken for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// The settings once they were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    pub issuer: String,
    pub audience: String,
    pub algorithms: Vec<SignatureAlgorithm>,
    pub clock_skew: Duration,
    pub principal_claim: String,
    pub owners: Vec<String>,
    pub scopes_claim: String,
    pub scopes: BTreeMap<String, Vec<Scope>>,
    pub default_scopes: Vec<Scope>,
    pub roots_claim: Option<String>,
    pub client_id: Option<String>,
    pub login_scopes: Vec<String>,
}

impl OidcSettings {
    /// The settings of a section: none if it names no issuer, an error that says what is wrong or missing.
    pub fn from_section(section: &OidcSection) -> Result<Option<Self>, String> {
        let Some(issuer) = section.issuer.clone() else { return Ok(None) };
        check_issuer_url(&issuer)?;
        let missing = "auth.oidc.issuer needs auth.oidc.audience: the `aud` of tokens that are meant for this server";
        let audience = section.audience.clone().filter(|audience| !audience.is_empty()).ok_or(missing)?;
        if section.algorithms.is_empty() {
            return Err("auth.oidc.algorithms must name one at least".to_owned());
        }
        if section.clock_skew.0 > MAX_CLOCK_SKEW {
            return Err(format!("auth.oidc.clock_skew is at most 5m: {}", section.clock_skew));
        }
        if section.principal_claim.is_empty() || section.scopes_claim.is_empty() {
            return Err("auth.oidc.principal_claim and auth.oidc.scopes_claim must name a claim".to_owned());
        }
        Ok(Some(Self {
            issuer,
            audience,
            algorithms: section.algorithms.clone(),
            clock_skew: section.clock_skew.0,
            principal_claim: section.principal_claim.clone(),
            owners: section.owners.clone(),
            scopes_claim: section.scopes_claim.clone(),
            scopes: section.scopes.clone(),
            default_scopes: section.default_scopes.clone(),
            roots_claim: section.roots_claim.clone().filter(|claim| !claim.is_empty()),
            client_id: section.client_id.clone().filter(|client| !client.is_empty()),
            login_scopes: section.login_scopes.clone(),
        }))
    }
}

/// An issuer's name is an address. Whoever can change what is read from there lets anybody in, hence TLS.
fn check_issuer_url(issuer: &str) -> Result<(), String> {
    let bad = |reason: &str| format!("auth.oidc.issuer {reason}: {issuer}");
    let url = Url::parse(issuer).map_err(|_| bad("is no address such as https://login.example.com"))?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback_url(&url) => {}
        _ => return Err(bad("must begin with https://")),
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err(bad("is an address without user, query and fragment"));
    }
    Ok(())
}

/// True if an address leads to this machine, in plain sight.
pub(crate) fn is_loopback_url(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_issuer_is_an_address_with_tls_unless_it_is_on_this_machine() {
        for (issuer, fine) in [
            ("https://login.example.com", true),
            ("https://login.example.com/realms/staff", true),
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://localhost:8080/x", true),
            ("http://login.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("ftp://login.example.com", false),
            ("login.example.com", false),
            ("https://a:b@login.example.com", false),
            ("https://login.example.com/?a=b", false),
            ("https://login.example.com/#a", false),
        ] {
            assert_eq!(check_issuer_url(issuer).is_ok(), fine, "{issuer}");
        }
    }
}
