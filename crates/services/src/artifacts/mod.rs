//! Artifacts: things put away under a name, in versions from 0, for any door and any agent.
//!
//! They are facts of no session, kept in the one store. Each scope has an index, a log of its own without the
//! contents; each version's content is another. A version is on its scope once the index says so: a crash in
//! between leaves a content that nobody points to.

mod index;
mod name;
mod page;
mod tools;

use std::sync::Arc;

use gander_domain::{Principal, Seq, SessionId, Timestamp};
use serde_json::{Map, Value};
use uuid::Uuid;

pub use gander_domain::ArtifactContent;
pub use index::{NamedArtifact, SavedVersion};
pub use tools::{artifact_tools, listed_artifact_tools};

use gander_runtime::hub::OnDeleted;
use gander_store::clock;
use gander_store::{Durability, FactLog, ScopeAppend, Store, StoreError};
use index::{ArtifactFact, ArtifactIndex};

/// A larger content is refused, counted as it is stored: base64 for what is no text.
pub const MAX_ARTIFACT_BYTES: usize = 24 << 20;

/// So many versions fit on one scope, all names together.
pub const MAX_VERSIONS: usize = 10_000;

/// How often two who save at once are let try again.
const MAX_SAVE_ATTEMPTS: usize = 64;

/// Where artifacts lie: with a session, and gone with it, or with somebody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArtifactScope(String);

/// One version, on its way in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewVersion {
    /// Under which name.
    pub name: String,
    /// Its media type, if known.
    pub mime: Option<String>,
    /// What its saver wants to find again.
    pub metadata: Map<String, Value>,
    pub content: ArtifactContent,
}

/// Why something cannot be put away or found.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No such name, and why.
    #[error("not the name of an artifact, {1}: {0:?}")]
    BadName(String, &'static str),
    /// Too much.
    #[error("an artifact has at most {MAX_ARTIFACT_BYTES} bytes: {0}")]
    TooLarge(usize),
    /// Too many.
    #[error("no more than {MAX_VERSIONS} versions can be kept here")]
    Full,
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All artifacts. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn Store>,
}

impl ArtifactScope {
    /// With a session: forgotten when that is deleted.
    pub fn for_session(session: SessionId) -> Self {
        Self(format!("artifacts/session/{session}"))
    }

    /// With a person, in a room of their own such as `apps`.
    pub fn for_user(principal: &Principal, room: &str) -> Self {
        Self(format!("artifacts/person/{principal}/{room}"))
    }
}

impl Artifacts {
    /// Those in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Puts a new version away. It would survive a power cut when this returns.
    pub async fn save(&self, scope: &ArtifactScope, new: NewVersion) -> Result<SavedVersion, ArtifactError> {
        check_new_artifact_version(&new)?;
        let content = new_artifact_content_scope();
        let NewVersion { name, mime, metadata, content: body } = new;
        self.store_content(&content, &body).await?;
        let log = self.index_log(scope);
        for _ in 0..MAX_SAVE_ATTEMPTS {
            let mut index = log.read_folded().await?;
            if index.state.len() >= MAX_VERSIONS {
                break;
            }
            log.compact_if_long(&mut index).await?;
            let at = clock::current_time();
            let number = index.state.next_version(&name);
            let version =
                SavedVersion { number, mime: mime.clone(), metadata: metadata.clone(), at, content: content.clone() };
            let saved = ArtifactFact::Saved { name: name.clone(), version: version.clone() };
            match log.append_after(&index, &saved).await {
                Ok(_) => return Ok(version),
                Err(StoreError::Gap { .. }) => {} // somebody else saved meanwhile
                Err(error) => return Err(error.into()),
            }
        }
        self.store.delete_scope(&content).await?;
        Err(ArtifactError::Full)
    }

    /// Everything on a scope, by name.
    pub async fn list(&self, scope: &ArtifactScope) -> Result<Vec<NamedArtifact>, ArtifactError> {
        Ok(self.read_index(scope).await?.into_artifacts())
    }

    /// All versions of one name, oldest first. None if there is none.
    pub async fn versions(&self, scope: &ArtifactScope, name: &str) -> Result<Vec<SavedVersion>, ArtifactError> {
        Ok(self.read_index(scope).await?.versions(name).to_vec())
    }

    /// One version, or the latest, with its content.
    pub async fn load(
        &self,
        scope: &ArtifactScope,
        name: &str,
        number: Option<u64>,
    ) -> Result<Option<(SavedVersion, ArtifactContent)>, ArtifactError> {
        let index = self.read_index(scope).await?;
        let versions = index.versions(name);
        let version = match number {
            Some(number) => versions.iter().find(|version| version.number == number),
            None => versions.last(),
        };
        let Some(version) = version else { return Ok(None) };
        let found = self.store.read_scope(&version.content, Seq::ZERO, 1).await?;
        let content = found.into_iter().next().and_then(|entry| serde_json::from_value(entry.fact).ok());
        Ok(content.map(|content| (version.clone(), content)))
    }

    /// Takes a name and all its versions away; false if there was none.
    pub async fn delete(&self, scope: &ArtifactScope, name: &str) -> Result<bool, ArtifactError> {
        let log = self.index_log(scope);
        let mut index = log.read_folded().await?;
        let versions = index.state.versions(name).to_vec();
        if versions.is_empty() {
            return Ok(false);
        }
        log.compact_if_long(&mut index).await?;
        log.append_fact(&ArtifactFact::Deleted { name: name.to_owned() }).await?;
        self.delete_contents(versions.iter()).await?;
        Ok(true)
    }

    /// Forgets the artifacts of sessions that were deleted.
    pub fn on_session_deleted(&self) -> OnDeleted {
        let artifacts = self.clone();
        Arc::new(move |session| {
            let artifacts = artifacts.clone();
            Box::pin(async move {
                if let Err(error) = artifacts.delete_all(&ArtifactScope::for_session(session)).await {
                    tracing::warn!(%error, %session, "artifacts of a deleted session are left behind");
                }
            })
        })
    }

    /// Takes a whole scope away.
    pub async fn delete_all(&self, scope: &ArtifactScope) -> Result<(), ArtifactError> {
        let kept = self.list(scope).await?;
        self.store.delete_scope(&scope.0).await?;
        self.delete_contents(kept.iter().flat_map(|kept| &kept.versions)).await
    }

    async fn delete_contents(&self, versions: impl Iterator<Item = &SavedVersion>) -> Result<(), ArtifactError> {
        for version in versions {
            self.store.delete_scope(&version.content).await?;
        }
        Ok(())
    }

    async fn read_index(&self, scope: &ArtifactScope) -> Result<ArtifactIndex, StoreError> {
        Ok(self.index_log(scope).read_folded().await?.state)
    }

    fn index_log(&self, scope: &ArtifactScope) -> FactLog<ArtifactIndex> {
        FactLog::new(Arc::clone(&self.store), scope.0.clone())
    }

    /// A log of one fact. The index that points to it is written behind a barrier, which makes this safe as well.
    async fn store_content(&self, scope: &str, content: &ArtifactContent) -> Result<(), StoreError> {
        let fact = serde_json::to_value(content).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let append = ScopeAppend { scope: scope.to_owned(), at: clock::current_time(), facts: vec![fact], after: None };
        self.store.append_scope(append, Durability::Relaxed).await.map(drop)
    }
}

impl SavedVersion {
    /// When it was put away.
    pub fn saved_at(&self) -> Timestamp {
        self.at
    }
}

fn new_artifact_content_scope() -> String {
    format!("artifacts/content/{}", Uuid::now_v7())
}

fn check_new_artifact_version(new: &NewVersion) -> Result<(), ArtifactError> {
    if let Some(flaw) = name::artifact_name_flaw(&new.name) {
        let shown = new.name[..new.name.floor_char_boundary(name::MAX_NAME_BYTES)].to_owned();
        return Err(ArtifactError::BadName(shown, flaw));
    }
    let metadata: usize = new.metadata.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
    let size = new.content.size_in_bytes() + metadata;
    if size > MAX_ARTIFACT_BYTES { Err(ArtifactError::TooLarge(size)) } else { Ok(()) }
}
