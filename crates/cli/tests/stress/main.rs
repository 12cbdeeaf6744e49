//! The real binary under load and with a failing disk: many streams, readers that do not read, power cuts, full disks.
//!
//! Apart from `server`, because it measures memory and needs the machine for itself.

mod acp_readers;
mod disk;
#[path = "../server/frames/mod.rs"]
mod frames;
mod many;
mod readers;
