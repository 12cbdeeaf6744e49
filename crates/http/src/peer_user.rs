//! Which user of this machine is behind a loopback connection.
//!
//! The link of `gander open` stands in the command line of the browser for a moment, and every user of a machine may read
//! those. So whoever comes over loopback with a ticket or a cookie must be a program of the user who runs this server.

use std::net::{IpAddr, SocketAddr};

use crate::connection_addresses::ConnectionAddresses;

/// True if the other end is a program of another user. Root may do anything anyway, and where the system does not say whose a
/// connection is, nobody is refused.
pub(crate) fn is_from_another_user(addresses: &ConnectionAddresses) -> bool {
    if !addresses.peer.ip().to_canonical().is_loopback() {
        return false;
    }
    let own = rustix::process::geteuid().as_raw();
    peer_connection_owner(addresses.peer, addresses.local).is_some_and(|owner| owner != own && owner != 0)
}

/// The user of the socket at the near end of a connection within this machine.
fn peer_connection_owner(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|path| {
        let table = std::fs::read_to_string(path).ok()?;
        table.lines().skip(1).find_map(|row| peer_row_owner(row, near, far))
    })
}

fn peer_row_owner(row: &str, near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let mut fields = row.split_whitespace().skip(1);
    let is_this = parse_peer_address(fields.next()?)? == canonical_peer_address(near)
        && parse_peer_address(fields.next()?)? == canonical_peer_address(far);
    // State, queues, timers and retransmissions stand between.
    if is_this { fields.nth(4)?.parse().ok() } else { None }
}

/// `0100007F:1F90`: words of four bytes in the machine's own order, then the port.
fn parse_peer_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words: Vec<u32> = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok())
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(canonical_peer_address(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

/// An IPv4 address in an IPv6 socket is an IPv4 address.
fn canonical_peer_address(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_of_this_process_is_its_own_users() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert_eq!(peer_connection_owner(near, far), Some(rustix::process::geteuid().as_raw()), "{address}");
            let addresses = ConnectionAddresses { peer: near, local: far, encrypted: false };
            assert!(!is_from_another_user(&addresses));
        }
    }

    #[test]
    fn rows_are_found_by_both_ends() {
        let row = "   3: 0100007F:A3F2 0100007F:128B 01 00000000:00000000 00:00000000 00000000  1001        0 93423 1";
        let [near, far] = ["127.0.0.1:41970", "127.0.0.1:4747"].map(|text| text.parse().unwrap());
        assert_eq!(peer_row_owner(row, near, far), Some(1001));
        assert_eq!(peer_row_owner(row, far, near), None);
        let mapped = "[::ffff:127.0.0.1]:41970".parse().unwrap();
        assert_eq!(peer_row_owner(row, mapped, far), Some(1001));
        let row =
            "0: 00000000000000000000000001000000:A3F2 00000000000000000000000001000000:128B 01 0:0 0:0 0 1002 0 1 1";
        let [near, far] = ["[::1]:41970", "[::1]:4747"].map(|text| text.parse().unwrap());
        assert_eq!(peer_row_owner(row, near, far), Some(1002));
    }
}
