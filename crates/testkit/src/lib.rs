//! Test doubles and builders that the tests of every crate share.

pub mod build;
pub mod ids;
pub mod script;

pub use ids::CountingIds;
pub use script::SessionScript;
