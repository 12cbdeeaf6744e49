//! Bad input at goose's REST and at ADK's, row by row of `interop/data/bad-inputs.tsv`: the stated answer, and the next
//! prompt works.

#![allow(clippy::unwrap_used)]

mod claims;
mod content;
mod edges;
mod family;
mod json;
mod out;
mod questions;
mod runs;
mod test_server;
