//! The confined file opener: what of a workspace may be read and written, and how.

pub(crate) mod access;
pub mod complete;
pub(crate) mod located;
pub(crate) mod secret_files;
pub(crate) mod walk;
pub(crate) mod workspace;
pub(crate) mod workspace_opener;
