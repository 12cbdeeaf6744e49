//! The folder that a session works in: a client's, checked, or a private one.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use gander_domain::SessionId;

/// Longer paths are refused: no system opens them.
const LONGEST: usize = 4_096;

/// Why a folder cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum BadWorkspace {
    /// Relative paths mean nothing to a server.
    #[error("must be an absolute path: {0}")]
    Relative(String),
    /// No path at all.
    #[error("is not a path that can exist")]
    Impossible,
    /// Nothing there, or not to be entered.
    #[error("cannot be entered: {0}")]
    Closed(String),
    /// Not a folder.
    #[error("is not a folder: {0}")]
    NotAFolder(String),
}

/// Finds and makes workspaces.
#[derive(Clone, Debug)]
pub struct Workspaces {
    scratch: PathBuf,
}

impl Workspaces {
    /// Folders of sessions that name none are made in here.
    pub fn new(scratch: PathBuf) -> Self {
        Self { scratch }
    }

    /// The folder a client named, without symbolic links. Nothing is made.
    pub fn named(&self, path: &str) -> Result<String, BadWorkspace> {
        if path.len() > LONGEST || path.contains('\0') {
            return Err(BadWorkspace::Impossible);
        }
        if !Path::new(path).is_absolute() {
            return Err(BadWorkspace::Relative(path.to_owned()));
        }
        let real = std::fs::canonicalize(path).map_err(|error| BadWorkspace::Closed(error.kind().to_string()))?;
        if !real.is_dir() {
            return Err(BadWorkspace::NotAFolder(path.to_owned()));
        }
        real.into_os_string().into_string().map_err(|_| BadWorkspace::Impossible)
    }

    /// A private folder for a session that named none.
    pub fn private(&self, session: SessionId) -> Result<String, BadWorkspace> {
        let folder = self.scratch.join(session.to_string());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error: io::Error| BadWorkspace::Closed(error.kind().to_string()))?;
        folder.into_os_string().into_string().map_err(|_| BadWorkspace::Impossible)
    }
}
