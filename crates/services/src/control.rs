//! What the owner tells the server itself.

use serde::{Deserialize, Serialize};

/// What the owner tells the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Listen on the network.
    Listen {
        /// Where; absent: where the configuration says.
        address: Option<String>,
        /// How connections are protected; absent: as the server was started.
        security: Option<ListenSecurity>,
    },
    /// Listen on the network no longer.
    Unlisten,
    /// Come to an end.
    Drain,
}

/// How connections to a TCP address are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenSecurity {
    /// Plain HTTP, which is for this machine alone.
    #[default]
    Plain,
    /// TLS with a certificate of our own.
    Tls,
    /// Plain HTTP on any address, because the owner said so.
    InsecurePlain,
}
