//! Agents with known behaviour, for checking clients and protocols, and a server that offers them.
//!
//! The product does not have them: `gander-conformance serve` is the product's own server with these agents added, built on
//! the library as any embedder would build one.

mod a2a_tck;
mod acp_rest_agents;
mod adk_scripted;
mod adk_tools;
mod agents;
mod demo_script;

pub use agents::agents;
