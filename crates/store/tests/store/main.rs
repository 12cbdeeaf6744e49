//! The log: what every store must do, what SQLite does besides, and kills in mid-write.

mod conformance;
mod crash;
mod sqlite;
mod story;
