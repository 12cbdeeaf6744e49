//! The built-in tools, who may run them unasked, and the files that make something run.

mod builtin;
mod permission;
mod protected;
