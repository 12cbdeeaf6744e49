//! The addresses of the connection that a request came by.

use std::net::SocketAddr;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionAddresses {
    /// The caller.
    pub peer: SocketAddr,
    /// This end.
    pub local: SocketAddr,
    /// Whether nobody between them can read along.
    pub encrypted: bool,
}

impl ConnectionAddresses {
    /// The ends of the connection that brought this request.
    pub fn of_request<B>(request: &http::Request<B>) -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        request.extensions().get().copied().unwrap_or(Self { peer: nowhere, local: nowhere, encrypted: false })
    }
}
