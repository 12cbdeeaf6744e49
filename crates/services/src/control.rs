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
    /// Make a ticket with which a browser comes in, and listen for it where nothing does yet.
    Ticket {
        /// Where the browser is.
        reach: TicketReach,
        /// Where to listen; absent: where the server does already, or where its configuration says.
        address: Option<String>,
    },
    /// Send every browser away.
    RevokeBrowsers,
    /// Say what it is and where it listens.
    Describe,
    /// Say which settings are active.
    Settings,
    /// Come to an end.
    Drain,
}

/// Where a browser is that gets a ticket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketReach {
    /// On this machine.
    #[default]
    Here,
    /// On a device in the same network, which needs TLS.
    Phone,
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
