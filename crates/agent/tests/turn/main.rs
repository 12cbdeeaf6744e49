//! Scripts and random sequences for the turn machine.
#![allow(clippy::unwrap_used)]

mod calls;
mod hostile;
mod model;
mod resume;
mod room;
mod script;
mod steer;
mod world;
