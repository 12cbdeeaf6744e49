//! Scripts and random sequences for the turn machine.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod calls;
mod hostile;
mod model;
mod pick_up;
mod resume;
mod room;
mod script;
mod steer;
mod world;
