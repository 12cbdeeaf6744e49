//! The tools themselves, a file each.

pub(crate) mod change;
pub(crate) mod edit;
pub(crate) mod fetch;
mod git_attributes;
mod git_index;
pub(crate) mod grep;
mod html;
pub(crate) mod list;
mod locations;
pub mod plan;
pub(crate) mod read;
pub(crate) mod shell;
pub(crate) mod shell_reads;
pub(crate) mod write;
