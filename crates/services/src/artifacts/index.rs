//! What lies on a scope: the fold of its log.

use std::collections::BTreeMap;

use gander_domain::Timestamp;
use gander_store::{FactEntry, FactState};
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
    Saved { name: String, version: SavedVersion },
    Deleted { name: String },
}

/// What lies on a scope now.
#[derive(Default)]
pub(super) struct ArtifactIndex {
    kept: BTreeMap<String, Vec<SavedVersion>>,
}

impl FactState for ArtifactIndex {
    type Fact = ArtifactFact;

    fn apply(&mut self, fact: ArtifactFact, _: FactEntry) {
        match fact {
            ArtifactFact::Saved { name, version } => self.kept.entry(name).or_default().push(version),
            ArtifactFact::Deleted { name } => drop(self.kept.remove(&name)),
        }
    }

    fn facts(&self) -> Vec<ArtifactFact> {
        let saved = |(name, versions): (&String, &Vec<SavedVersion>)| {
            let name = name.clone();
            versions.clone().into_iter().map(move |version| ArtifactFact::Saved { name: name.clone(), version })
        };
        self.kept.iter().flat_map(saved).collect()
    }

    fn approximate_fact_count(&self) -> usize {
        self.len()
    }
}

impl ArtifactIndex {
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
}
