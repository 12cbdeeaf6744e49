//! The logins of this data directory at servers elsewhere: one private file, by the server's address.

use std::io;
use std::time::SystemTime;

use super::device_login::{LoginError, LoginTokens};
use crate::paths::Paths;
use crate::vault::Vault;

/// The logins that are kept.
pub struct StoredLogins {
    vault: Vault,
}

/// Why a login cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredLoginError {
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("cannot keep the login: {0}")]
    File(#[from] io::Error),
}

impl StoredLogins {
    /// Those of this data directory.
    pub fn open(paths: &Paths) -> io::Result<Self> {
        Ok(Self { vault: Vault::open(paths.logins_file())? })
    }

    /// Keeps a login, in place of the one that was there.
    pub fn put(&self, server: &str, tokens: &LoginTokens) -> io::Result<()> {
        self.vault.put(&server_key(server), tokens)
    }

    /// Forgets a login. False if there was none.
    pub fn remove(&self, server: &str) -> io::Result<bool> {
        let is_known = self.vault.get::<LoginTokens>(&server_key(server)).is_some();
        self.vault.remove(&server_key(server))?;
        Ok(is_known)
    }

    /// The token for a server, refreshed if it is about to end; none if nobody logged in there.
    pub async fn token(&self, server: &str) -> Result<Option<String>, StoredLoginError> {
        let Some(tokens) = self.vault.get::<LoginTokens>(&server_key(server)) else { return Ok(None) };
        if !tokens.is_ending(SystemTime::now()) {
            return Ok(Some(tokens.access_token().to_owned()));
        }
        let fresh = tokens.refresh().await?;
        // Written before it is used: many issuers take back the old refresh token with the first use of a new one.
        self.put(server, &fresh)?;
        Ok(Some(fresh.access_token().to_owned()))
    }
}

/// Scheme, host and port, however the address is spelled.
fn server_key(server: &str) -> String {
    let url = server.replacen("ws", "http", usize::from(server.starts_with("ws")));
    match reqwest::Url::parse(&url) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_the_same_however_its_address_is_spelled() {
        for spelled in [
            "https://agents.example",
            "https://agents.example/",
            "https://Agents.example:443/acp",
            "wss://agents.example",
        ] {
            assert_eq!(server_key(spelled), "https://agents.example", "{spelled}");
        }
        assert_ne!(server_key("http://agents.example"), "https://agents.example");
    }
}
