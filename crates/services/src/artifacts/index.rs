//! What lies on a scope: the fold of its log.

use std::collections::BTreeMap;

use gander_domain::{Seq, Timestamp};
use gander_store::{Place, Saying, Store, StoreError, read_on, shorten};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A name and its versions, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedArtifact {
    /// The name.
    pub name: String,
    /// At least one.
    pub versions: Vec<SavedVersion>,
}

/// One version, without its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedVersion {
    /// From 0.
    pub number: u64,
    /// Its media type, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// What its saver wants to find again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// When it was put away.
    pub(super) at: Timestamp,
    /// The log that holds its content.
    pub(super) content: String,
}

/// What happened on a scope.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ArtifactFact {
    Saved {
        name: String,
        version: SavedVersion,
    },
    Deleted {
        name: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

/// What lies on a scope now.
#[derive(Default)]
pub(super) struct ArtifactIndex {
    kept: BTreeMap<String, Vec<SavedVersion>>,
    place: Place,
    /// It holds facts that only another version knows.
    strange: bool,
}

impl ArtifactIndex {
    pub(super) async fn read(store: &dyn Store, scope: &str) -> Result<Self, StoreError> {
        let mut index = Self::default();
        let place = read_on(store, scope, Place::default(), |saying| match saying {
            Saying::Anew => index.kept.clear(),
            Saying::Fact(fact) => {
                index.apply(serde_json::from_value(fact).unwrap_or(ArtifactFact::Unknown(Value::Null)))
            }
        });
        let place = place.await?;
        index.place = place;
        Ok(index)
    }

    /// A log that is long for what lies on the scope says it anew.
    pub(super) async fn compact_if_long(&self, store: &dyn Store, scope: &str) -> Result<(), StoreError> {
        if self.strange || !self.place.is_long(self.len()) {
            return Ok(());
        }
        let versions =
            self.kept.iter().flat_map(|(name, versions)| versions.iter().map(move |version| (name, version)));
        let saved = |(name, version): (&String, &SavedVersion)| {
            serde_json::to_value(ArtifactFact::Saved { name: name.clone(), version: version.clone() })
        };
        let facts = versions.map(saved).collect::<Result<Vec<_>, _>>();
        let facts = facts.map_err(|error| StoreError::Invalid(error.to_string()))?;
        shorten(store, scope, self.place, facts).await.map(drop)
    }

    /// The place of the last fact.
    pub(super) fn end(&self) -> Seq {
        self.place.end
    }

    /// How many versions there are.
    pub(super) fn len(&self) -> usize {
        self.kept.values().map(Vec::len).sum()
    }

    pub(super) fn next_version(&self, name: &str) -> u64 {
        self.versions(name).last().map_or(0, |version| version.number + 1)
    }

    pub(super) fn versions(&self, name: &str) -> &[SavedVersion] {
        self.kept.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn into_artifacts(self) -> Vec<NamedArtifact> {
        self.kept.into_iter().map(|(name, versions)| NamedArtifact { name, versions }).collect()
    }

    fn apply(&mut self, fact: ArtifactFact) {
        match fact {
            ArtifactFact::Saved { name, version } => self.kept.entry(name).or_default().push(version),
            ArtifactFact::Deleted { name } => {
                self.kept.remove(&name);
            }
            ArtifactFact::Unknown(_) => self.strange = true,
        }
    }
}
