//! The client library against scripted agents and real processes.

mod client;
mod process;
mod scripted;
