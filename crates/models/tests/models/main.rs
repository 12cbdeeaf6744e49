//! The wires of model vendors: what is sent, what streams mean, retries and detection.

mod detect;
mod encode;
mod http;
mod server;
mod wires;
mod written;
