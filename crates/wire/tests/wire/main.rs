//! The protocols as pure functions: requests, projections, golden vectors, dialects and laws.

mod a2a_requests;
mod a2a_vectors;
mod acp_rest;
mod adk;
mod bad_inputs;
mod client;
mod common;
mod conformance;
mod connection;
mod dialects;
mod goose;
mod goose_client;
mod jsonrpc;
mod laws;
mod methods;
mod questions;
mod recital;
mod remote;
mod sse;
mod v2;
mod v2_methods;
mod vectors;
