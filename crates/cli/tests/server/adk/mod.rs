//! Google's Agent Development Kit over REST: captured exchanges replayed, confirmations, queues, bad input, kills.

#![allow(clippy::unwrap_used)]

mod artifacts;
mod asking;
mod bad;
mod client;
mod compare;
mod evaluations;
mod kill;
mod known;
mod live;
mod replay;
mod runs;
mod test_server;
