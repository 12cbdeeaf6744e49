//! Where sessions are kept.

use std::fmt;

use gander_store::PostgresUrl;
use serde::{Deserialize, Serialize};

/// Where sessions are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSection {
    /// A PostgreSQL database; absent: one file in the data directory.
    pub url: Option<StoreUrl>,
}

/// The URL of a database. Whatever shows or writes it leaves out the password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Parsed anew: it was checked when it was read.
    pub fn parse(&self) -> Result<PostgresUrl, gander_store::StoreError> {
        self.0.parse()
    }
}

/// True if the text of a URL has a password, rightly placed or not.
pub(super) fn store_holds_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = authority.split(['/', '?']).next().and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}

impl TryFrom<String> for StoreUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse::<PostgresUrl>().map_err(|error| error.to_string())?;
        Ok(Self(text))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parse() {
            Ok(url) => url.fmt(f),
            Err(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_password_is_read_and_never_shown() {
        let url = StoreUrl::try_from("postgres://anna:s3cret@db/log".to_owned()).unwrap();
        let section = StoreSection { url: Some(url) };
        let shown =
            format!("{section:?} {} {}", section.url.as_ref().unwrap(), serde_json::to_string(&section).unwrap());
        assert!(shown.contains("postgres://anna@db:5432/log") && !shown.contains("s3cret"), "{shown}");
        let wrong = StoreUrl::try_from("postgres://anna:s3cret@db:x/log".to_owned()).unwrap_err();
        assert!(!wrong.contains("s3cret"), "{wrong}");
        assert!(
            store_holds_password("postgres://anna:s3cret@db/log")
                && store_holds_password("postgres://db/log?password=x")
        );
        assert!(!store_holds_password("postgres://anna@db:5432/log"));
    }
}
