//! Tickets for browsers that the owner asks for on the Unix socket, and an address at which they are taken.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use gander_http::browser_ticket_url;
use gander_services::browser_access::{PHONE_TICKET_TTL, TICKET_TTL};
use gander_services::{ListenSecurity, TicketReach};
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;

use super::listen_security;
use super::server::{Listening, OpenAddress, Server, ServerError, WantedListener};

/// Where a browser of this kind reaches the server. Listens there if nothing does, for as long as the guard is held.
pub(super) fn listen_for_browser(
    server: &Arc<Server>,
    reach: TicketReach,
    named: Option<String>,
) -> Result<(OpenAddress, Option<DropGuard>), String> {
    let config = server.app.config();
    let named = named
        .map(|text| text.parse().map_err(|_| format!("not an address such as 127.0.0.1:4747: {text}")))
        .transpose()?;
    let open = server.open_addresses().into_iter().find(|open| match named {
        Some(address) => open.address == address,
        None => serves_ticket_reach(open, reach),
    });
    if let Some(open) = open {
        return Ok((open, None));
    }
    let (address, security) = match reach {
        TicketReach::Here => (named.unwrap_or(config.sections.server.listen), listen_security(config)),
        TicketReach::Phone => (
            named.map_or_else(|| ticket_network_address(config.sections.server.listen.port()), Ok)?,
            ListenSecurity::Tls,
        ),
    };
    let listening = match server.listen(WantedListener::without_key(address, security)) {
        // Another server has this port, perhaps of another data directory. A browser does not mind another one.
        Err(ServerError::Listen { reason, .. }) if named.is_none() && reason.kind() == io::ErrorKind::AddrInUse => {
            server.listen(WantedListener::without_key(SocketAddr::new(address.ip(), 0), security))
        }
        listening => listening,
    };
    let Listening { address, fingerprint, guard, key: _ } = listening.map_err(|error| error.to_string())?;
    Ok((OpenAddress { address, fingerprint }, Some(guard)))
}

/// A ticket of the owner's, and the address that brings it.
pub(super) async fn issue_ticket(server: &Server, reach: TicketReach, open: &OpenAddress) -> Result<Value, String> {
    let http = &server.gateway.http;
    let ttl = match reach {
        TicketReach::Here => TICKET_TTL,
        TicketReach::Phone => PHONE_TICKET_TTL,
    };
    let ticket = http.browsers.issue_ticket(http.tokens.owner_id(), Instant::now(), ttl).await;
    let ticket = ticket.map_err(|error| format!("no ticket could be made: {error}"))?;
    let base = format!(
        "{}://{}",
        if open.fingerprint.is_some() { "https" } else { "http" },
        ticket_reachable_address(open.address)?
    );
    Ok(json!({
        "address": base,
        "url": browser_ticket_url(&base, &ticket),
        "expiresInSeconds": ttl.as_secs(),
        "fingerprint": open.fingerprint,
    }))
}

/// A phone's ticket and cookie never cross the network in the clear.
fn serves_ticket_reach(open: &OpenAddress, reach: TicketReach) -> bool {
    match reach {
        TicketReach::Here => true,
        TicketReach::Phone => open.fingerprint.is_some() && !open.address.ip().to_canonical().is_loopback(),
    }
}

/// An address that a browser can go to: a listener on every address of the machine has none of its own.
fn ticket_reachable_address(address: SocketAddr) -> Result<SocketAddr, String> {
    if address.ip().is_unspecified() { ticket_network_address(address.port()) } else { Ok(address) }
}

/// The address that other devices of the network see. Connecting a UDP socket sends nothing: it only asks the system which
/// address it would send from.
fn ticket_network_address(port: u16) -> Result<SocketAddr, String> {
    let ask = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(("192.0.2.1", 9))?;
        Ok(socket.local_addr()?.ip())
    };
    match ask() {
        Ok(ip) if !ip.is_loopback() && !ip.is_unspecified() => Ok(SocketAddr::new(ip, port)),
        Ok(_) | Err(_) => Err("this machine has no address in a network: name one with --listen ADDR:PORT".to_owned()),
    }
}
