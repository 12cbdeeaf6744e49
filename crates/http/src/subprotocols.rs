//! What a page puts among the subprotocols of a WebSocket, where it cannot set headers: a ticket, or its key.

use http::header::{self, HeaderMap, HeaderValue};

/// A WebSocket of a page cannot have headers; a ticket may stand among its subprotocols, behind this.
pub(crate) const TICKET_SUBPROTOCOL: &str = "gander.ticket.";
/// Where a page puts its key into a WebSocket, likewise.
pub(crate) const PAGE_KEY_SUBPROTOCOL: &str = "gander.page.";
/// The subprotocol to agree on: a browser that offered some fails if none is chosen. A ticket is chosen only if it is
/// the only one offered; it is used up by then. A page key is never sent back: pages offer `acp` beside it.
pub fn chosen_subprotocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_ticket = |name: &&str| name.starts_with(TICKET_SUBPROTOCOL);
    let is_secret = |name: &&str| is_ticket(name) || name.starts_with(PAGE_KEY_SUBPROTOCOL);
    let acp = subprotocols(headers).find(|name| *name == "acp");
    let ticket = subprotocols(headers).find(is_ticket);
    let beside_ticket = ticket.and_then(|_| subprotocols(headers).find(|name| !is_secret(name)));
    acp.or(beside_ticket).or(ticket).and_then(|name| HeaderValue::from_str(name).ok())
}

/// Every subprotocol that is offered.
pub(crate) fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_subprotocol_is_chosen_where_one_is_offered() {
        let chosen = |line: &'static str| {
            let value = chosen_subprotocol(&headers(&[("sec-websocket-protocol", line)]));
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(chosen("acp, gander.ticket.x").as_deref(), Some("acp"));
        assert_eq!(chosen("gander.ticket.x, mine").as_deref(), Some("mine"));
        assert_eq!(chosen("gander.ticket.x").as_deref(), Some("gander.ticket.x"));
        assert_eq!(chosen("acp, gander.page.x").as_deref(), Some("acp"));
        assert_eq!(chosen("gander.page.x"), None);
        assert_eq!(chosen("mine"), None);
        assert_eq!(chosen_subprotocol(&HeaderMap::new()), None);
    }
}
