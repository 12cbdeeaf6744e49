//! Artifacts and shared values: kept in versions, found after a restart, gone with their session.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gander_domain::Principal;
use gander_server::artifacts::{ArtifactError, Artifacts, Content, LARGEST, NewVersion, Shelf};
use gander_server::log::{Options, SqliteStore, Store};
use gander_server::state::{Room, Shared};
use gander_testkit::build;
use serde_json::{Map, Value, json};

async fn open(folder: &std::path::Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(Options::new(folder.join("data"))).await.unwrap())
}

fn text(name: &str, text: &str) -> NewVersion {
    let content = Content::Text { text: text.to_owned() };
    NewVersion { name: name.to_owned(), mime: Some("text/plain".to_owned()), metadata: Map::new(), content }
}

fn state(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn texts(artifacts: &Artifacts, shelf: &Shelf, name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for version in artifacts.versions(shelf, name).await.unwrap() {
        let (_, content) = artifacts.load(shelf, name, Some(version.number)).await.unwrap().unwrap();
        let Content::Text { text } = content else { panic!("no text") };
        texts.push(format!("{}={text}", version.number));
    }
    texts
}

#[tokio::test]
async fn versions_count_from_0_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (shelf, other) = (Shelf::session(build::session(1)), Shelf::person(&Principal::owner(), "apps"));
    let store = open(folder.path()).await;
    let artifacts = Artifacts::new(Arc::clone(&store));
    for (shelf, name, body) in [(&shelf, "a/b.txt", "one"), (&shelf, "a/b.txt", "two"), (&other, "a/b.txt", "other")] {
        artifacts.save(shelf, text(name, body)).await.unwrap();
    }
    store.close().await.unwrap();
    drop((store, artifacts));
    let artifacts = Artifacts::new(open(folder.path()).await);
    assert_eq!(texts(&artifacts, &shelf, "a/b.txt").await, ["0=one", "1=two"]);
    assert_eq!(texts(&artifacts, &other, "a/b.txt").await, ["0=other"]);
    let (latest, _) = artifacts.load(&shelf, "a/b.txt", None).await.unwrap().unwrap();
    assert_eq!(latest.number, 1);
    assert!(artifacts.load(&shelf, "a/b.txt", Some(2)).await.unwrap().is_none());
    assert!(artifacts.delete(&shelf, "a/b.txt").await.unwrap());
    assert!(!artifacts.delete(&shelf, "a/b.txt").await.unwrap());
    assert_eq!(artifacts.save(&shelf, text("a/b.txt", "new")).await.unwrap().number, 0);
    artifacts.forget(&shelf).await.unwrap();
    assert_eq!(artifacts.list(&shelf).await.unwrap(), []);
    assert_eq!(artifacts.list(&other).await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_who_save_at_once_get_two_versions() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(open(folder.path()).await);
    let shelf = Shelf::session(build::session(1));
    let saves = (0..12).map(|n| {
        let (artifacts, shelf) = (artifacts.clone(), shelf.clone());
        tokio::spawn(async move { artifacts.save(&shelf, text("x", &n.to_string())).await.unwrap().number })
    });
    let mut numbers = Vec::new();
    for save in saves.collect::<Vec<_>>() {
        numbers.push(save.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
}

#[tokio::test]
async fn bad_names_and_too_much_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(open(folder.path()).await);
    let shelf = Shelf::session(build::session(1));
    for name in ["", "../x", "a/../b", "/a", "CON", "a.", "a\nb", &"x".repeat(300)] {
        let refused = artifacts.save(&shelf, text(name, "x")).await;
        assert!(matches!(refused, Err(ArtifactError::BadName(..))), "{name}");
    }
    let huge = artifacts.save(&shelf, text("x", &"x".repeat(LARGEST + 1))).await;
    assert!(matches!(huge, Err(ArtifactError::TooLarge(_))));
    assert_eq!(artifacts.list(&shelf).await.unwrap(), []);
}

#[tokio::test]
async fn shared_values_are_seen_by_who_shares_them_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let room = |app: &str, user: &str| Room { principal: Principal::owner(), app: app.into(), user: user.into() };
    let store = open(folder.path()).await;
    let shared = Shared::new(Arc::clone(&store));
    let delta = state(json!({ "a": 1, "user:b": 2, "app:c": 3, "temp:d": 4 }));
    shared.set(&room("x", "ann"), &delta).await.unwrap();
    shared.set(&room("x", "ann"), &state(json!({ "user:b": null }))).await.unwrap();
    store.close().await.unwrap();
    drop((store, shared));
    let shared = Shared::new(open(folder.path()).await);
    assert_eq!(shared.get(&room("x", "ann")).await.unwrap(), state(json!({ "app:c": 3, "user:b": null })));
    assert_eq!(shared.get(&room("x", "bob")).await.unwrap(), state(json!({ "app:c": 3 })));
    assert_eq!(shared.get(&room("y", "ann")).await.unwrap(), state(json!({})));
    let much = state(json!({ "user:x": "x".repeat(300_000) }));
    assert!(shared.set(&room("x", "ann"), &much).await.is_err());
}
