//! Keeps fetches away from this machine and its networks: an address is looked up once, checked, and that one is dialled.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;

use super::public_address::is_public_address;

/// Decides which addresses may be fetched.
#[derive(Clone)]
pub struct Guard {
    resolver: Arc<dyn Resolver>,
    allowed: Arc<[String]>,
}

/// Looks up the addresses of a host.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All of them.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Asks the system.
pub struct SystemResolver;

/// Why an address is not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// Only http and https.
    #[error("only http and https addresses are fetched: {0}")]
    Scheme(String),
    /// What stands before an @ may be a password, or a host in disguise.
    #[error("addresses with a user name are not fetched: {0}")]
    User(String),
    /// Nothing to dial.
    #[error("address has no host: {0}")]
    NoHost(String),
    /// The name leads nowhere.
    #[error("host is not found: {0}")]
    Unknown(String),
    /// The name leads to this machine or its networks.
    #[error("blocked address, it is not a public one: {0}")]
    Private(String),
}

impl Default for Guard {
    fn default() -> Self {
        Self::new([])
    }
}

impl Guard {
    /// Lets through what is public, and these peers: `host` or `host:port`.
    pub fn new(allowed: impl IntoIterator<Item = String>) -> Self {
        Self { resolver: Arc::new(SystemResolver), allowed: allowed.into_iter().collect() }
    }

    /// The same, with another way to look up hosts.
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// What needs no look-up: scheme, user, host, and addresses given as such.
    pub fn check_literal_host(&self, url: &Url) -> Result<(), Blocked> {
        let shown = || url.host_str().unwrap_or_default().to_owned();
        match url.scheme() {
            "http" | "https" => {}
            other => return Err(Blocked::Scheme(other.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Blocked::User(shown()));
        }
        let (Some(host), Some(port)) = (url.host_str().filter(|host| !host.is_empty()), url.port_or_known_default())
        else {
            return Err(Blocked::NoHost(url.to_string()));
        };
        match guarded_literal_address(host) {
            Some(address) if !self.is_allowed(host, port) && !is_public_address(address) => {
                Err(Blocked::Private(shown()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The addresses to dial: all of them are fine, or none is dialled.
    pub async fn allowed_addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Blocked> {
        self.check_literal_host(url)?;
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        if let Some(address) = guarded_literal_address(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.resolver.resolve(host, port).await.map_err(|_| Blocked::Unknown(host.to_owned()))?;
        let fine = self.is_allowed(host, port) || found.iter().all(|address| is_public_address(address.ip()));
        match fine {
            _ if found.is_empty() => Err(Blocked::Unknown(host.to_owned())),
            true => Ok(found),
            false => Err(Blocked::Private(host.to_owned())),
        }
    }

    fn is_allowed(&self, host: &str, port: u16) -> bool {
        let exact = format!("{host}:{port}");
        self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(&exact))
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        tokio::net::lookup_host((host, port)).await.map(Iterator::collect)
    }
}

fn guarded_literal_address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    inner.parse().ok()
}
