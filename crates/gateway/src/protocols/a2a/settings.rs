//! The settings of A2A.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{CardSigner, PushNotifications};

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

/// What A2A is set to, and what was opened for it.
pub struct A2aSettings {
    /// Its section of the settings.
    pub section: A2aSection,
    /// Who wants updates of tasks sent where.
    pub push: PushNotifications,
    /// Who signs agent cards, if anybody does.
    pub signer: Option<Arc<CardSigner>>,
}

/// What all cards have in common.
#[derive(Debug)]
pub(crate) struct CardSettings {
    /// The address under which others know this server, if that is not what they call it.
    pub(super) public_url: Option<String>,
    pub(super) grpc: bool,
    pub(super) v03: bool,
    pub(super) since: Timestamp,
}

impl CardSettings {
    /// As the settings say.
    pub(crate) fn new(a2a: &A2aSection) -> Self {
        Self { public_url: a2a.public_url.clone(), grpc: a2a.grpc, v03: a2a.v03, since: Timestamp::now() }
    }

    /// True if gRPC is spoken.
    pub(crate) fn grpc(&self) -> bool {
        self.grpc
    }
}
