//! The protocols, a folder each: `mod.rs` and its neighbours carry out requests, `routes` reads them from HTTP.

pub mod a2a;
pub mod acp;
pub mod acp_rest;
pub mod adk;
pub mod goose;
