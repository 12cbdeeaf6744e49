//! The one place that decides which folder a session works in: a caller's choice, checked, or a private one.
//!
//! The data directory is never a workspace, its `scratch/<session>` folders aside. The owner on the same machine may
//! choose any other folder. Everybody else, the owner from another machine included, chooses below `server.roots`.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use gander_domain::caller::{Caller, Protocol};
use gander_domain::{Principal, SessionId, SessionView};
use gander_runtime::hub::{Hub, PrivateFolder};
use gander_tools::FileAccess;

use crate::paths;

/// Longer paths are refused: no system opens them.
const MAX_PATH_BYTES: usize = 4_096;

/// Why a folder cannot be a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// The token and every session lie there.
    #[error("is in the server's data directory, which is never a workspace: {0}")]
    DataDirectory(String),
    /// Only the owner on the same machine chooses freely.
    #[error(
        "must lie below a folder of server.roots; only the owner on the server's machine may choose others \
(leave it out for a private folder): {0}"
    )]
    OutsideRoots(String),
}

/// Finds and makes workspaces.
#[derive(Clone, Debug)]
pub struct Workspaces {
    scratch: PathBuf,
    roots: Vec<PathBuf>,
    /// The only folders below the roots that the caller at hand may choose, if its credential lists some.
    claimed_roots: Option<Vec<PathBuf>>,
    /// Where new sessions of an agent work whose client names no folder.
    agent_folders: BTreeMap<String, PathBuf>,
    files: FileAccess,
}

/// Which folders somebody may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedFolders {
    Anywhere,
    BelowRoots,
}

/// A folder that may be chosen.
#[derive(Debug, PartialEq, Eq)]
enum CheckedFolder {
    Folder(String),
    /// It is, or lies in, the private folder of this session.
    Scratch(String, Option<SessionId>),
}

impl Workspaces {
    /// Folders of sessions that name none are made in `scratch`; what `files` hides is never a workspace.
    pub fn new(scratch: PathBuf, roots: Vec<PathBuf>, files: FileAccess) -> Self {
        Self { scratch, roots, claimed_roots: None, agent_folders: BTreeMap::new(), files }
    }

    /// The same, where new sessions of these agents work if their client names no folder.
    pub fn with_agent_folders(self, agent_folders: BTreeMap<String, PathBuf>) -> Self {
        Self { agent_folders, ..self }
    }

    /// The folder that is configured for an agent, for a caller who may choose it. A caller who may not gets none: it
    /// asked for nothing, so it is not refused.
    pub async fn agent_workspace(
        &self,
        hub: &Hub,
        caller: &Caller,
        agent: &str,
    ) -> Result<Option<String>, BadWorkspace> {
        let Some(folder) = self.agent_folders.get(agent) else { return Ok(None) };
        match self.choose_workspace(hub, caller, &folder.to_string_lossy()).await {
            Ok(folder) => Ok(Some(folder)),
            Err(BadWorkspace::OutsideRoots(_)) => {
                tracing::info!(agent, principal = %caller.principal, "a session gets a private folder: its caller may not use server.workspaces");
                Ok(None)
            }
            Err(
                error @ (BadWorkspace::Relative(_)
                | BadWorkspace::Impossible
                | BadWorkspace::Closed(_)
                | BadWorkspace::NotAFolder(_)
                | BadWorkspace::DataDirectory(_)),
            ) => Err(error),
        }
    }

    /// The folder that a caller chose, without symbolic links. Nothing is made.
    pub async fn choose_workspace(&self, hub: &Hub, caller: &Caller, path: &str) -> Result<String, BadWorkspace> {
        let choice = allowed_folders(caller);
        let (this, named) = (self.within_roots_of(caller), path.to_owned());
        // The disk may be slow, or a server far away.
        let looked = tokio::task::spawn_blocking(move || this.check_folder(choice, &named)).await;
        let chosen = looked.map_err(|error| BadWorkspace::Closed(error.to_string()))??;
        match (chosen, choice) {
            (CheckedFolder::Folder(folder), _) | (CheckedFolder::Scratch(folder, _), AllowedFolders::Anywhere) => {
                Ok(folder)
            }
            (CheckedFolder::Scratch(folder, Some(session)), AllowedFolders::BelowRoots)
                if hub.view_for(session, &caller.principal).await.is_ok() =>
            {
                Ok(folder)
            }
            // Somebody else's private folder looks as if it were not there.
            (CheckedFolder::Scratch(..), AllowedFolders::BelowRoots) => {
                Err(BadWorkspace::OutsideRoots(path.to_owned()))
            }
        }
    }

    /// The same for a caller whose credential lists its folders: only what lies below one of them and below a root.
    fn within_roots_of(&self, caller: &Caller) -> Self {
        let claimed = caller.roots.clone().map(|roots| roots.into_iter().map(PathBuf::from).collect());
        Self { claimed_roots: claimed, ..self.clone() }
    }

    /// Checks again, when work begins, a folder that was chosen before: roots may be fewer, links may have been turned.
    pub fn check_allowed(&self, owner: &Principal, path: &str) -> Result<(), BadWorkspace> {
        let choice = if *owner == Principal::owner() { AllowedFolders::Anywhere } else { AllowedFolders::BelowRoots };
        self.check_folder(choice, path).map(drop)
    }

    /// True if both name the same folder.
    pub fn is_same_folder(&self, named: &str, workspace: &str) -> bool {
        named == workspace || std::fs::canonicalize(named).is_ok_and(|real| real == Path::new(workspace))
    }

    /// How sessions that work in this folder name it, for lists of sessions.
    pub fn canonical_name(&self, named: String) -> String {
        let real = std::fs::canonicalize(&named).ok().and_then(|real| real.into_os_string().into_string().ok());
        real.unwrap_or(named)
    }

    /// A private folder for a session that named none.
    pub fn create_scratch(&self, session: SessionId) -> Result<String, BadWorkspace> {
        let folder = self.scratch.join(session.to_string());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error: io::Error| BadWorkspace::Closed(error.kind().to_string()))?;
        folder.into_os_string().into_string().map_err(|_| BadWorkspace::Impossible)
    }

    /// Where a session's private folder is, or would be.
    pub fn scratch_of_session(&self, session: SessionId) -> String {
        self.scratch.join(session.to_string()).to_string_lossy().into_owned()
    }

    /// True if the session works in its own private folder, of this data directory or of another node's.
    pub fn has_private_folder(&self, view: &SessionView) -> bool {
        private_session(view).is_some()
    }

    /// Where this server keeps the private folder that a session was given on any node. It is made if it is missing.
    /// None if the session works elsewhere, or if its folder is as it was.
    pub fn find_private_folder(&self, view: &SessionView) -> Option<PrivateFolder> {
        let session = private_session(view)?;
        let path = self.scratch_of_session(session);
        let is_new = !Path::new(&path).is_dir();
        if path == view.workspace && !is_new {
            return None;
        }
        match self.create_scratch(session) {
            Ok(path) => Some(PrivateFolder { path, is_new }),
            Err(error) => {
                tracing::warn!(%session, %error, "no private folder on this node");
                None
            }
        }
    }

    /// The private folder that this is, or lies in.
    pub fn scratch_around(&self, workspace: &str) -> Option<String> {
        let workspace = Path::new(workspace);
        let named = workspace.strip_prefix(&self.scratch).ok().and_then(|below| below.components().next());
        let named = named.and_then(|name| name.as_os_str().to_str()?.parse().ok());
        Some(self.scratch_of_session(named.or_else(|| self.scratch_session(workspace)?)?))
    }

    /// Removes a private folder that no session needs any more.
    pub async fn remove_scratch(&self, folder: String) {
        let path = PathBuf::from(&folder);
        debug_assert!(path.starts_with(&self.scratch), "only private folders are removed");
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
        match removed.map_err(io::Error::other).and_then(|removed| removed) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, folder, "the private folder of a deleted session is left behind");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Bytes that the private folder of a session takes up on disk.
    pub async fn scratch_size(&self, session: SessionId) -> u64 {
        let folder = self.scratch.join(session.to_string());
        tokio::task::spawn_blocking(move || paths::disk_use_of_path(&folder)).await.unwrap_or(0)
    }

    fn check_folder(&self, choice: AllowedFolders, path: &str) -> Result<CheckedFolder, BadWorkspace> {
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(BadWorkspace::Impossible);
        }
        if !Path::new(path).is_absolute() {
            return Err(BadWorkspace::Relative(path.to_owned()));
        }
        let found = self.real_folder(path);
        let scratch = found.as_ref().ok().and_then(|real| self.scratch_session(real));
        match choice {
            AllowedFolders::Anywhere => {}
            AllowedFolders::BelowRoots if scratch.is_some() => {}
            // One answer for everything else: nobody finds out this way what there is on the disk.
            AllowedFolders::BelowRoots if !self.is_below_roots(path, found.as_deref().ok()) => {
                return Err(BadWorkspace::OutsideRoots(path.to_owned()));
            }
            AllowedFolders::BelowRoots => {}
        }
        let real = found?;
        let around = choice == AllowedFolders::BelowRoots && self.files.is_around_hidden(&real);
        if around || self.files.hides_path(&real) {
            return Err(BadWorkspace::DataDirectory(path.to_owned()));
        }
        let name = real.into_os_string().into_string().map_err(|_| BadWorkspace::Impossible)?;
        Ok(match scratch {
            Some(session) => CheckedFolder::Scratch(name, session),
            None => CheckedFolder::Folder(name),
        })
    }

    fn real_folder(&self, path: &str) -> Result<PathBuf, BadWorkspace> {
        let real = std::fs::canonicalize(path).map_err(|error| BadWorkspace::Closed(error.kind().to_string()))?;
        if real.is_dir() { Ok(real) } else { Err(BadWorkspace::NotAFolder(path.to_owned())) }
    }

    /// What really lies below a root, or would by its name if it were there.
    fn is_below_roots(&self, path: &str, real: Option<&Path>) -> bool {
        let lists = [Some(&self.roots), self.claimed_roots.as_ref()];
        lists.into_iter().flatten().all(|roots| is_below_any_root(roots, path, real))
    }

    /// The session whose private folder holds this path; the inner value is absent if no session is named so.
    fn scratch_session(&self, real: &Path) -> Option<Option<SessionId>> {
        let scratch = self.scratch.canonicalize().ok()?;
        let below = real.strip_prefix(scratch).ok()?.components().next()?;
        Some(below.as_os_str().to_str().and_then(|name| name.parse().ok()))
    }
}

/// The session whose private folder this one works in, in whichever data directory: its own, or that of the one it belongs
/// to. A folder that is only called like another's private one must not lead there.
fn private_session(view: &SessionView) -> Option<SessionId> {
    let folder = Path::new(&view.workspace);
    let session = folder.file_name()?.to_str()?.parse().ok()?;
    let is_private = folder.parent()?.file_name()? == paths::Paths::SCRATCH;
    (is_private && (session == view.session || view.parent == Some(session))).then_some(session)
}

fn is_below_any_root(roots: &[PathBuf], path: &str, real: Option<&Path>) -> bool {
    let real_roots = || roots.iter().filter(|root| root.is_absolute()).filter_map(|root| root.canonicalize().ok());
    match real {
        Some(real) => real_roots().any(|root| real.starts_with(root)),
        None => {
            let plain = Path::new(path).components().all(|part| !matches!(part, Component::ParentDir));
            plain && real_roots().chain(roots.to_vec()).any(|root| Path::new(path).starts_with(root))
        }
    }
}

/// The owner's own schedules and sub-agents go on where the owner began them.
fn allowed_folders(caller: &Caller) -> AllowedFolders {
    let at_home = caller.is_same_machine() || caller.protocol == Protocol::Internal;
    if caller.is_owner() && at_home { AllowedFolders::Anywhere } else { AllowedFolders::BelowRoots }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use gander_tools::Redactor;

    use super::*;

    const SESSION: &str = "0190f0f0-0000-7000-8000-000000000001";

    fn workspaces(root: &Path) -> Workspaces {
        let data = root.join("data");
        std::fs::create_dir_all(data.join("scratch").join(SESSION)).unwrap();
        for folder in ["lent/inner", "home"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("lent/file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("home"), root.join("lent/out")).unwrap();
        std::os::unix::fs::symlink(&data, root.join("lent/data")).unwrap();
        std::os::unix::fs::symlink(root.join("lent"), root.join("home/in")).unwrap();
        let files = FileAccess::new(Redactor::default()).with_hidden_folder(data.clone(), "scratch");
        Workspaces::new(data.join("scratch"), vec![root.join("lent")], files)
    }

    #[test]
    fn the_data_directory_is_nobodys_choice_and_roots_hold_everybody_but_the_owner() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspaces = workspaces(&root);
        let at =
            |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", root.display()) };
        let folder = |path: &str| Ok(CheckedFolder::Folder(at(path)));
        let scratch = Ok(CheckedFolder::Scratch(at(&format!("data/scratch/{SESSION}")), SESSION.parse().ok()));
        let data = |path: &str| Err(BadWorkspace::DataDirectory(at(path)));
        let outside = |path: &str| Err(BadWorkspace::OutsideRoots(at(path)));
        let missing = || Err(BadWorkspace::Closed("entity not found".to_owned()));
        let cases = [
            ("data", data("data"), outside("data")),
            ("lent/data", data("lent/data"), outside("lent/data")),
            ("lent/../data", data("lent/../data"), outside("lent/../data")),
            ("data/scratch", data("data/scratch"), outside("data/scratch")),
            (
                &format!("data/scratch/{SESSION}"),
                scratch,
                Ok(CheckedFolder::Scratch(at(&format!("data/scratch/{SESSION}")), SESSION.parse().ok())),
            ),
            ("home", folder("home"), outside("home")),
            ("lent/out", folder("home"), outside("lent/out")),
            ("", folder(""), outside("")),
            ("missing", missing(), outside("missing")),
            ("lent", folder("lent"), folder("lent")),
            ("lent/inner", folder("lent/inner"), folder("lent/inner")),
            ("home/in/inner", folder("lent/inner"), folder("lent/inner")),
            ("lent/missing", missing(), missing()),
            ("lent/../missing", missing(), outside("lent/../missing")),
            (
                "lent/file",
                Err(BadWorkspace::NotAFolder(at("lent/file"))),
                Err(BadWorkspace::NotAFolder(at("lent/file"))),
            ),
            ("/", folder("/"), outside("/")),
        ];
        for (path, anywhere, below_roots) in cases {
            let trimmed = |chosen: Result<CheckedFolder, BadWorkspace>| format!("{chosen:?}").replace("/\")", "\")");
            assert_eq!(
                trimmed(workspaces.check_folder(AllowedFolders::Anywhere, &at(path))),
                trimmed(anywhere),
                "owner: {path}"
            );
            assert_eq!(
                trimmed(workspaces.check_folder(AllowedFolders::BelowRoots, &at(path))),
                trimmed(below_roots),
                "other: {path}"
            );
        }
    }

    #[test]
    fn a_root_around_the_data_directory_lends_what_lies_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut workspaces = workspaces(&root);
        workspaces.roots = vec![root.clone()];
        let look = |path: &Path| workspaces.check_folder(AllowedFolders::BelowRoots, path.to_str().unwrap());
        assert!(matches!(look(&root), Err(BadWorkspace::DataDirectory(_))));
        assert!(matches!(look(&root.join("data")), Err(BadWorkspace::DataDirectory(_))));
        assert!(look(&root.join("home")).is_ok());
    }
}
