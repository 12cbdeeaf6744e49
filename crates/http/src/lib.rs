//! HTTP as every protocol needs it: an accept loop, the guard, limits, bodies, streams, TLS, event streams and WebSockets.
//!
//! A protocol of `gateway` is a table of routes that is served from here; nothing here knows which protocols there are.

pub mod accept_header;
pub mod artifact_download;
mod audit_log;
pub mod body;
pub mod browser;
pub mod connection_addresses;
mod docs;
pub mod error;
pub mod fallback;
pub mod guard;
mod h2_frame_meter;
pub mod health;
pub mod large_responses;
pub mod message_framing;
mod metrics;
mod oidc_metadata;
pub mod openapi;
pub mod origin_check;
pub mod outgoing_bytes;
pub mod paced_body;
pub mod page;
pub mod panics;
mod peer_user;
pub mod percent;
pub mod protocol;
pub mod rate_limit;
mod request_scanner;
mod request_token;
pub mod revocation;
pub mod route;
pub mod route_tables;
pub mod serve;
pub mod settings;
pub mod spool;
mod spooled_bytes;
pub mod sse;
pub mod sse_response;
pub mod stalled_readers;
pub mod state;
pub mod stream_limits;
mod subprotocols;
pub mod tls;
pub mod websocket;
pub mod websocket_upgrade;

pub use browser::browser_ticket_url;
pub use connection_addresses::ConnectionAddresses;
pub use error::{Problem, RefusedRequest, problem_response};
pub use large_responses::LargeResponses;
pub use protocol::HttpProtocol;
pub use route::{Access, Payload, Route, RouteRule, Serve, Size, Verb};
pub use route_tables::{ProtocolAbout, RouteTables};
pub use serve::{serve_http, serve_http_with_tls};
pub use state::HttpState;
pub use tls::{SelfSigned, TlsError};
