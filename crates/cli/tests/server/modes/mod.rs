//! Agents and modes: the same at every protocol; plans, routes, budgets and sub-agents.

#![allow(clippy::unwrap_used)]

mod delegate;
mod files;
mod limits;
mod plan;
mod project;
mod routing;
mod spent;
mod split;
mod table;
mod test_server;
