//! Artifacts: things put away under a name, in versions from 0, for any door and any agent.
//!
//! They are facts of no session, kept in the one store. Each shelf has an index, a log of its own without the
//! contents; each version's content is another. A version is on its shelf once the index says so: a crash in
//! between leaves a content that nobody points to.

mod index;
mod name;
mod page;
mod tools;

use std::sync::Arc;

use gander_domain::{Principal, Seq, SessionId, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

pub use gander_domain::ArtifactContent as Content;
pub use index::{Kept, Version};
pub use tools::{ArtifactTools, specs};

use gander_runtime::hub::OnDeleted;
use gander_store::clock;
use gander_store::{Durability, ScopeAppend, Store, StoreError};
use index::{Fact, Index};

/// A larger content is refused, counted as it is stored: base64 for what is no text.
pub const LARGEST: usize = 24 << 20;

/// So many versions fit on one shelf, all names together.
pub const MOST: usize = 10_000;

/// How often two who save at once are let try again.
const TRIES: usize = 64;

/// Where artifacts lie: with a session, and gone with it, or with somebody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shelf(String);

/// One version, on its way in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewVersion {
    /// Under which name.
    pub name: String,
    /// Its media type, if known.
    pub mime: Option<String>,
    /// What its saver wants to find again.
    pub metadata: Map<String, Value>,
    /// It.
    pub content: Content,
}

/// Why something cannot be put away or found.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No such name, and why.
    #[error("not the name of an artifact, {1}: {0:?}")]
    BadName(String, &'static str),
    /// Too much.
    #[error("an artifact has at most {LARGEST} bytes: {0}")]
    TooLarge(usize),
    /// Too many.
    #[error("no more than {MOST} versions can be kept here")]
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

impl Shelf {
    /// With a session: forgotten when that is deleted.
    pub fn session(session: SessionId) -> Self {
        Self(format!("artifacts/session/{session}"))
    }

    /// With a person, in a room of their own such as `apps`.
    pub fn person(principal: &Principal, room: &str) -> Self {
        Self(format!("artifacts/person/{principal}/{room}"))
    }
}

impl Artifacts {
    /// Those in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Puts a new version away. It would survive a power cut when this returns.
    pub async fn save(&self, shelf: &Shelf, new: NewVersion) -> Result<Version, ArtifactError> {
        check(&new)?;
        let content = content_scope();
        let NewVersion { name, mime, metadata, content: body } = new;
        self.append(&content, fact(&body)?, None, Durability::Relaxed).await?;
        for _ in 0..TRIES {
            let index = self.index(shelf).await?;
            if index.len() >= MOST {
                break;
            }
            index.tidy(&*self.store, &shelf.0).await?;
            let at = clock::now();
            let number = index.next_version(&name);
            let version =
                Version { number, mime: mime.clone(), metadata: metadata.clone(), at, content: content.clone() };
            let saved = fact(&Fact::Saved { name: name.clone(), version: version.clone() })?;
            match self.append(&shelf.0, saved, Some(index.end()), Durability::Barrier).await {
                Ok(()) => return Ok(version),
                Err(StoreError::Gap { .. }) => {} // somebody else saved meanwhile
                Err(error) => return Err(error.into()),
            }
        }
        self.store.delete_scope(&content).await?;
        Err(ArtifactError::Full)
    }

    /// Everything on a shelf, by name.
    pub async fn list(&self, shelf: &Shelf) -> Result<Vec<Kept>, ArtifactError> {
        Ok(self.index(shelf).await?.into_kept())
    }

    /// All versions of one name, oldest first. None if there is none.
    pub async fn versions(&self, shelf: &Shelf, name: &str) -> Result<Vec<Version>, ArtifactError> {
        Ok(self.index(shelf).await?.versions(name).to_vec())
    }

    /// One version, or the latest, with its content.
    pub async fn load(
        &self,
        shelf: &Shelf,
        name: &str,
        number: Option<u64>,
    ) -> Result<Option<(Version, Content)>, ArtifactError> {
        let index = self.index(shelf).await?;
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
    pub async fn delete(&self, shelf: &Shelf, name: &str) -> Result<bool, ArtifactError> {
        let index = self.index(shelf).await?;
        let versions = index.versions(name);
        if versions.is_empty() {
            return Ok(false);
        }
        index.tidy(&*self.store, &shelf.0).await?;
        self.append(&shelf.0, fact(&Fact::Deleted { name: name.to_owned() })?, None, Durability::Barrier).await?;
        self.forget_contents(versions.iter()).await?;
        Ok(true)
    }

    /// Forgets the artifacts of sessions that were deleted.
    pub fn forgetter(&self) -> OnDeleted {
        let artifacts = self.clone();
        Arc::new(move |session| {
            let artifacts = artifacts.clone();
            Box::pin(async move {
                if let Err(error) = artifacts.forget(&Shelf::session(session)).await {
                    tracing::warn!(%error, %session, "artifacts of a deleted session are left behind");
                }
            })
        })
    }

    /// Takes a whole shelf away.
    pub async fn forget(&self, shelf: &Shelf) -> Result<(), ArtifactError> {
        let kept = self.list(shelf).await?;
        self.store.delete_scope(&shelf.0).await?;
        self.forget_contents(kept.iter().flat_map(|kept| &kept.versions)).await
    }

    async fn forget_contents(&self, versions: impl Iterator<Item = &Version>) -> Result<(), ArtifactError> {
        for version in versions {
            self.store.delete_scope(&version.content).await?;
        }
        Ok(())
    }

    async fn index(&self, shelf: &Shelf) -> Result<Index, StoreError> {
        Index::read(&*self.store, &shelf.0).await
    }

    async fn append(&self, scope: &str, fact: Value, after: Option<Seq>, sync: Durability) -> Result<(), StoreError> {
        let append = ScopeAppend { scope: scope.to_owned(), at: clock::now(), facts: vec![fact], after };
        self.store.append_scope(append, sync).await.map(drop)
    }
}

impl Version {
    /// When it was put away.
    pub fn saved_at(&self) -> Timestamp {
        self.at
    }
}

fn content_scope() -> String {
    format!("artifacts/content/{}", Uuid::now_v7())
}

fn fact(value: &impl Serialize) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::Invalid(error.to_string()))
}

fn check(new: &NewVersion) -> Result<(), ArtifactError> {
    if let Some(flaw) = name::flaw(&new.name) {
        let shown = new.name[..new.name.floor_char_boundary(name::LONGEST)].to_owned();
        return Err(ArtifactError::BadName(shown, flaw));
    }
    let metadata: usize = new.metadata.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
    let size = new.content.size() + metadata;
    if size > LARGEST { Err(ArtifactError::TooLarge(size)) } else { Ok(()) }
}
