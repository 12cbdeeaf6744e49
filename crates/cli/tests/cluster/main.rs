//! Three real servers over one real PostgreSQL: any of them serves any reader and takes any command, whatever happens to
//! the others.
//!
//! `GANDER_CLUSTER_FAULTS=100 cargo test -p gander-cli --test cluster faults -- --nocapture` does more to them and prints
//! figures, `GANDER_SEED=n` repeats a run.

#![allow(clippy::print_stderr, clippy::wildcard_enum_match_arm)]

mod accepted_commands;
mod acp_http;
#[path = "../kill/checks.rs"]
mod checks;
mod clock_jumps;
mod deploy;
mod failover;
mod faults;
mod figures;
mod honest_health;
mod network_cuts;
mod node_roles;
mod one_writer;
mod protocols;
mod resumed_streams;
#[allow(dead_code, reason = "the kill tests use all of it")]
#[path = "../kill/seeded_random.rs"]
mod seeded_random;
mod shared_credentials;
mod shared_facts;
mod test_cluster;
mod traces;
mod versions;
