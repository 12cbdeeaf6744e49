//! Test doubles and builders that the tests of every crate share.

pub mod build;
pub mod call_record;
pub mod collector;
pub mod conformance;
pub mod goosed;
pub mod harness;
pub mod ids;
pub mod mcp;
pub mod postgres;
pub mod script;
pub mod skip;
pub mod upstream;
pub mod vectors;

pub use ids::CountingIds;
pub use script::SessionScript;
