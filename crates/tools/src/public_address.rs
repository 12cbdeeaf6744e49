//! Addresses of the public network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for addresses that lead out into the internet, to one machine.
pub(crate) fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public_v4(mapped),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        (0, ..) | (240.., ..) => true,       // this network, reserved, broadcast
        (100, 64..=127, _) => true,          // carrier NAT
        (192, 0, 0) | (192, 88, 99) => true, // protocol assignments, 6to4 relays
        (198, 18..=19, _) => true,           // benchmarks
        _ => address.is_documentation() || address.is_multicast(),
    };
    !(special || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let special = match (a, b) {
        (0x2001, 0x0000..=0x01ff) => true, // Teredo, ORCHID and other assignments
        (0x2001, 0x0db8) | (0x3fff, 0x0000..=0x0fff) => true, // documentation
        (0x2002, _) => true,               // 6to4: another address inside
        _ => false,
    };
    (0x2000..=0x3fff).contains(&a) && !special
}
