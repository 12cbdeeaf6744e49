//! The terminal: what a person sees of a session, and what they type.

pub(crate) mod diff;
pub(crate) mod list_table;
pub(crate) mod markdown;
pub(crate) mod person;
mod row_limit;
pub(crate) mod spinner;
mod tool_log;
pub(crate) mod view;
pub(crate) mod wrap;
