//! The settings of A2A.

use serde::{Deserialize, Serialize};

/// The server side of A2A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct A2aSection {
    /// The agent behind `/a2a`; absent: the first.
    #[serde(default)]
    pub agent: Option<String>,
    /// The address that cards name; absent: the one that the caller used.
    #[serde(default)]
    pub public_url: Option<String>,
    /// Do cards speak to clients of 0.3 too?
    pub v03: bool,
    /// Is gRPC spoken, and on the cards?
    pub grpc: bool,
    /// Receivers of push notifications in private networks.
    pub push_allow: Vec<String>,
    /// Are cards signed?
    pub sign: bool,
    /// The file of the key that signs them; absent: one of our own making.
    #[serde(default)]
    pub signing_key: Option<String>,
}
