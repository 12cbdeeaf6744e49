//! What the claims of a checked token mean here: a principal, its scopes and its folders.

use std::collections::BTreeSet;

use gander_domain::Principal;
use gander_domain::caller::{Identity, Scope};
use serde_json::Value;

use super::OidcError;
use super::settings::OidcSettings;

/// The longest name of a principal.
const MAX_NAME_BYTES: usize = 256;
/// More folders than this are not looked at.
const MAX_ROOTS: usize = 64;
/// Stands before the names of principals of the identity provider. No name of a local token holds a colon: a person
/// of the provider who is called like one is somebody else.
const PRINCIPAL_PREFIX: &str = "oidc:";

/// Who these claims are about, and what they may do.
pub(super) fn identity_from_claims(claims: &Value, settings: &OidcSettings) -> Result<Identity, OidcError> {
    let lacking = |claim: &str| OidcError::Claim(claim.to_owned());
    let name = find_claim(claims, &settings.principal_claim).and_then(Value::as_str);
    let is_name = |name: &&str| !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
    let name = name.filter(is_name).ok_or_else(|| lacking(&settings.principal_claim))?;
    if settings.owners.iter().any(|owner| owner == name) {
        return Ok(Identity { scopes: granted_scopes(claims, settings), ..Identity::owner() });
    }
    let listed = |claim: &String| claimed_texts(find_claim(claims, claim)).into_iter().take(MAX_ROOTS).collect();
    let roots = settings.roots_claim.as_ref().map(listed);
    let principal = Principal::named(format!("{PRINCIPAL_PREFIX}{name}"));
    Ok(Identity { principal, scopes: granted_scopes(claims, settings), adk_user: None, roots })
}

/// Every token may read what belongs to its principal.
fn granted_scopes(claims: &Value, settings: &OidcSettings) -> BTreeSet<Scope> {
    let claimed = claimed_texts(find_claim(claims, &settings.scopes_claim));
    let granted = claimed.iter().filter_map(|claimed| settings.scopes.get(claimed)).flatten();
    granted.chain(&settings.default_scopes).copied().chain([Scope::Read]).collect()
}

/// The claim of this name, or the one at the end of a path such as `realm_access.roles`.
fn find_claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    let whole = claims.get(name);
    whole.or_else(|| name.split('.').try_fold(claims, |value, part| value.get(part)))
}

/// A list of texts, or one text with spaces in between, as OAuth writes scopes.
fn claimed_texts(claim: Option<&Value>) -> Vec<String> {
    match claim {
        Some(Value::String(text)) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn settings() -> OidcSettings {
        OidcSettings {
            issuer: "https://login.example.com".into(),
            audience: "gander".into(),
            algorithms: Vec::new(),
            clock_skew: Duration::ZERO,
            principal_claim: "sub".into(),
            owners: vec!["root@example.com".into()],
            scopes_claim: "realm_access.roles".into(),
            scopes: BTreeMap::from([("staff".into(), vec![Scope::Prompt, Scope::Approve])]),
            default_scopes: Vec::new(),
            roots_claim: Some("https://example.com/folders".into()),
            client_id: None,
            login_scopes: Vec::new(),
        }
    }

    #[test]
    fn claims_become_a_principal_with_scopes_and_roots() {
        let claims = json!({
            "sub": "ada",
            "realm_access": {"roles": ["staff", "other", 7]},
            "https://example.com/folders": ["/srv/ada"],
        });
        let expected = Identity {
            principal: Principal::named("oidc:ada"),
            scopes: [Scope::Read, Scope::Prompt, Scope::Approve].into(),
            adk_user: None,
            roots: Some(vec!["/srv/ada".into()]),
        };
        assert_eq!(identity_from_claims(&claims, &settings()), Ok(expected));
    }

    #[test]
    fn who_has_no_roles_reads_and_who_has_no_folders_gets_none() {
        let known = identity_from_claims(&json!({"sub": "ada"}), &settings()).unwrap();
        assert_eq!((known.scopes, known.roots), ([Scope::Read].into(), Some(Vec::new())));
    }

    #[test]
    fn nobody_is_the_owner_by_name_but_those_whom_the_settings_say() {
        let named = |name: &str| identity_from_claims(&json!({"sub": name}), &settings()).unwrap().principal;
        assert_eq!(named("owner"), Principal::named("oidc:owner"));
        assert_eq!(named("root@example.com"), Principal::owner());
        for bad in
            [json!({}), json!({"sub": ""}), json!({"sub": 1}), json!({"sub": "a\nb"}), json!({"sub": "x".repeat(300)})]
        {
            assert_eq!(identity_from_claims(&bad, &settings()), Err(OidcError::Claim("sub".into())), "{bad}");
        }
    }
}
