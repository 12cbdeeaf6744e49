//! Which names a caller may use for us, and which web pages may call. Against rebinding and cross-site requests.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use crate::connection_addresses::ConnectionAddresses;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The allowed names and origins, beyond the obvious.
#[derive(Debug)]
pub struct OriginCheck {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a caller is not let near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRejected {
    /// It says no name, or two.
    NoHost,
    /// It calls us by a name that is not ours.
    WrongHost,
    /// It is a web page from elsewhere.
    WrongOrigin,
}

impl OriginCheck {
    pub fn new(hosts: &[String], origins: &[String]) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { hosts: lower(hosts), origins: lower(origins) }
    }

    /// Checks both. Gives the origin to echo, if the caller is a web page that may come in.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<Option<HeaderValue>, HostRejected> {
        let authority = request_authority(uri, headers).ok_or(HostRejected::NoHost)?.to_ascii_lowercase();
        let host = host_without_port(&authority).ok_or(HostRejected::NoHost)?;
        if !self.is_own_host(host, local) {
            return Err(HostRejected::WrongHost);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else {
            return if headers.contains_key(header::ORIGIN) { Err(HostRejected::WrongOrigin) } else { Ok(None) };
        };
        let text = origin.to_str().map_err(|_| HostRejected::WrongOrigin)?.to_ascii_lowercase();
        let same = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) == Some(authority.as_str());
        if same || self.origins.contains(&text) { Ok(Some(origin.clone())) } else { Err(HostRejected::WrongOrigin) }
    }

    /// Rebinding needs a name: the very address of this end of the connection is no danger.
    fn is_own_host(&self, host: &str, local: IpAddr) -> bool {
        let address: Option<IpAddr> = host.parse().ok();
        host == "localhost"
            || address.is_some_and(|address| address.is_loopback() || address == local.to_canonical())
            || self.hosts.iter().any(|allowed| allowed == host)
    }
}

/// Where the caller found us: addresses of ours begin so. The guard let nobody in who uses a name that is not ours.
pub fn request_base_url(parts: &Parts) -> String {
    let encrypted = parts.extensions.get::<ConnectionAddresses>().is_some_and(|address| address.encrypted);
    let name = request_authority(&parts.uri, &parts.headers);
    format!("{}://{}", if encrypted { "https" } else { "http" }, name.as_deref().unwrap_or("localhost"))
}

/// The one name the caller uses: HTTP/2 has it in the address, HTTP/1 in a header.
pub fn request_authority(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (in_header, more) = (hosts.next(), hosts.next());
    let in_header = match in_header {
        Some(value) => Some(value.to_str().ok()?),
        None => None,
    };
    match (uri.authority(), in_header) {
        _ if more.is_some() => None,
        (Some(authority), Some(host)) if authority.as_str() != host => None,
        (Some(authority), _) => Some(authority.as_str().to_owned()),
        (None, Some(host)) if !host.is_empty() => Some(host.to_owned()),
        (None, _) => None,
    }
}

/// True if a page of this very server makes the request. Browsers say so themselves, and pages cannot change what they say:
/// a request that says nothing is not a page's, and a cookie is only a page's to use.
pub(crate) fn is_same_origin(headers: &HeaderMap, authority: Option<&str>) -> bool {
    let site = headers.get(SEC_FETCH_SITE).map(|site| site == "same-origin");
    let origin = headers.get(header::ORIGIN).map(|origin| {
        let text = origin.to_str().unwrap_or_default();
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        host.is_some() && host == authority
    });
    (site.is_some() || origin.is_some()) && site.unwrap_or(true) && origin.unwrap_or(true)
}

/// Without port and brackets; nothing if there is more than a host and a port.
fn host_without_port(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let digits = if port.is_empty() { "" } else { port.strip_prefix(':')? };
    (!host.contains('@') && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(host)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(host: Option<&str>, origin: Option<&str>) -> Result<Option<String>, HostRejected> {
        let names = OriginCheck::new(&["Box.example".into()], &["https://app.example".into()]);
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            value.map(|value| headers.insert(name, value.parse().unwrap()));
        }
        let echo = names.check(&Uri::from_static("/x"), &headers, "192.168.1.5".parse().unwrap())?;
        Ok(echo.map(|value| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn our_own_names_are_let_in() {
        let ours = ["localhost", "localhost:4747", "127.0.0.1:4747", "[::1]:4747", "BOX.example:1", "192.168.1.5:80"];
        for host in ours {
            assert_eq!(check(Some(host), None), Ok(None), "{host}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for host in
            ["evil.example", "localhost.evil.example", "192.168.1.6", "127.0.0.1.nip.io", "[::2]", "localhost.:1"]
        {
            assert_eq!(check(Some(host), None), Err(HostRejected::WrongHost), "{host}");
        }
        assert_eq!(check(None, None), Err(HostRejected::NoHost));
        for host in ["127.0.0.1:1@evil.example", "localhost@evil.example", "localhost:x", "[::1]x", "[::1", "a:1:2"] {
            assert_eq!(check(Some(host), None), Err(HostRejected::NoHost), "{host}");
        }
    }

    #[test]
    fn only_our_own_and_listed_pages_may_call() {
        for origin in ["http://localhost:4747", "https://localhost:4747", "https://app.example"] {
            assert_eq!(check(Some("localhost:4747"), Some(origin)), Ok(Some(origin.into())), "{origin}");
        }
        let strangers = [
            "null",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1:4748",
            "http://localhost",
            "https://app.example.evil",
            "file://",
            "",
        ];
        for origin in strangers {
            assert_eq!(check(Some("localhost:4747"), Some(origin)), Err(HostRejected::WrongOrigin), "{origin}");
        }
    }

    #[test]
    fn two_hosts_or_two_origins_are_none() {
        let names = OriginCheck::new(&[], &[]);
        let local = "127.0.0.1".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        assert_eq!(names.check(&Uri::from_static("/"), &headers, local), Err(HostRejected::WrongOrigin));
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(names.check(&Uri::from_static("/"), &headers, local), Err(HostRejected::NoHost));
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(names.check(&Uri::from_static("http://evil.example/"), &headers, local), Err(HostRejected::NoHost));
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_counts_for_pages_of_this_server_alone() {
        let same = |pairs| is_same_origin(&headers(pairs), Some("localhost:4747"));
        assert!(same(&[("sec-fetch-site", "same-origin")]));
        assert!(same(&[("origin", "http://localhost:4747")]));
        assert!(same(&[("sec-fetch-site", "same-origin"), ("origin", "https://localhost:4747")]));
        for foreign in [
            &[][..],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://localhost:8080")],
            &[("origin", "null")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8080")],
            &[("sec-fetch-site", "cross-site"), ("origin", "http://localhost:4747")],
        ] {
            assert!(!same(foreign), "{foreign:?}");
        }
    }
}
