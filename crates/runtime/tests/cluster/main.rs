//! Several hubs over one model store: what each node does for the others, and a simulation with faults by seed.
// The checker looks for a few events among all, and the simulation prints how much it did.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::wildcard_enum_match_arm)]

mod nodes;
mod simulation;
