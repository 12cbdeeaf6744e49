//! What all protocols share of HTTP: the guard, limits, bodies, streams and TLS, on an own accept loop.

pub(crate) mod accept_header;
pub(crate) mod artifact_download;
pub(crate) mod body;
pub(crate) mod browser;
pub(crate) mod connection_addresses;
pub(crate) mod error;
pub(crate) mod fallback;
pub(crate) mod guard;
pub(crate) mod h2_abuse;
pub(crate) mod health;
pub(crate) mod json_stream;
pub(crate) mod origin_check;
pub(crate) mod paced_body;
pub(crate) mod page;
pub(crate) mod panics;
mod peer_user;
pub(crate) mod protocol;
pub(crate) mod rate_limit;
pub(crate) mod rejection;
pub(crate) mod request_framing;
pub(crate) mod route;
pub(crate) mod serve;
pub(crate) mod spool;
pub(crate) mod sse_response;
pub(crate) mod state;
pub(crate) mod stream_limits;
pub(crate) mod tls;
pub(crate) mod websocket_upgrade;

pub use browser::ticket_url;
pub use connection_addresses::ConnectionAddresses;
pub use error::{Problem, RefusedRequest, problem};
pub use protocol::HttpProtocol;
pub use route::{Access, Payload, Route, RouteRule, Serve, Size, Verb};
pub use serve::{serve_http, serve_http_with_tls};
pub use state::HttpState;
pub use tls::{SelfSigned, TlsError};
