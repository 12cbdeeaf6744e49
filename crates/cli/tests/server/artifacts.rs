//! Artifacts and shared values: kept in versions, found after a restart, gone with their session.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gander_domain::Principal;
use gander_services::artifacts::{
    ArtifactContent, ArtifactError, ArtifactScope, Artifacts, MAX_ARTIFACT_BYTES, NewVersion,
};
use gander_services::state::{SharedState, StateScopeKey};
use gander_store::{MemoryStore, SqliteStore, Store, StoreOptions, longest_fact_log, read_scope_all};
use gander_testkit::build;
use serde_json::{Map, Value, json};

async fn open(folder: &std::path::Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(StoreOptions::new(folder.join("data"))).await.unwrap())
}

fn text(name: &str, text: &str) -> NewVersion {
    let content = ArtifactContent::Text { text: text.to_owned() };
    NewVersion { name: name.to_owned(), mime: Some("text/plain".to_owned()), metadata: Map::new(), content }
}

fn state(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn texts(artifacts: &Artifacts, scope: &ArtifactScope, name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for version in artifacts.versions(scope, name).await.unwrap() {
        let (_, content) = artifacts.load(scope, name, Some(version.number)).await.unwrap().unwrap();
        let ArtifactContent::Text { text } = content else { panic!("no text") };
        texts.push(format!("{}={text}", version.number));
    }
    texts
}

#[tokio::test]
async fn versions_count_from_0_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (scope, other) =
        (ArtifactScope::for_session(build::session(1)), ArtifactScope::for_user(&Principal::owner(), "apps"));
    let store = open(folder.path()).await;
    let artifacts = Artifacts::new(Arc::clone(&store));
    for (scope, name, body) in [(&scope, "a/b.txt", "one"), (&scope, "a/b.txt", "two"), (&other, "a/b.txt", "other")] {
        artifacts.save(scope, text(name, body)).await.unwrap();
    }
    store.close().await.unwrap();
    drop((store, artifacts));
    let artifacts = Artifacts::new(open(folder.path()).await);
    assert_eq!(texts(&artifacts, &scope, "a/b.txt").await, ["0=one", "1=two"]);
    assert_eq!(texts(&artifacts, &other, "a/b.txt").await, ["0=other"]);
    let (latest, _) = artifacts.load(&scope, "a/b.txt", None).await.unwrap().unwrap();
    assert_eq!(latest.number, 1);
    assert!(artifacts.load(&scope, "a/b.txt", Some(2)).await.unwrap().is_none());
    assert!(artifacts.delete(&scope, "a/b.txt").await.unwrap());
    assert!(!artifacts.delete(&scope, "a/b.txt").await.unwrap());
    assert_eq!(artifacts.save(&scope, text("a/b.txt", "new")).await.unwrap().number, 0);
    artifacts.delete_all(&scope).await.unwrap();
    assert_eq!(artifacts.list(&scope).await.unwrap(), []);
    assert_eq!(artifacts.list(&other).await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_who_save_at_once_get_two_versions() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(open(folder.path()).await);
    let scope = ArtifactScope::for_session(build::session(1));
    let saves = (0..12).map(|n| {
        let (artifacts, scope) = (artifacts.clone(), scope.clone());
        tokio::spawn(async move { artifacts.save(&scope, text("x", &n.to_string())).await.unwrap().number })
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
    let scope = ArtifactScope::for_session(build::session(1));
    for name in ["", "../x", "a/../b", "/a", "CON", "a.", "a\nb", &"x".repeat(300)] {
        let refused = artifacts.save(&scope, text(name, "x")).await;
        assert!(matches!(refused, Err(ArtifactError::BadName(..))), "{name}");
    }
    let huge = artifacts.save(&scope, text("x", &"x".repeat(MAX_ARTIFACT_BYTES + 1))).await;
    assert!(matches!(huge, Err(ArtifactError::TooLarge(_))));
    assert_eq!(artifacts.list(&scope).await.unwrap(), []);
}

#[tokio::test]
async fn shared_values_are_seen_by_who_shares_them_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let room =
        |app: &str, user: &str| StateScopeKey { principal: Principal::owner(), app: app.into(), user: user.into() };
    let store = open(folder.path()).await;
    let shared = SharedState::new(Arc::clone(&store));
    let delta = state(json!({ "a": 1, "user:b": 2, "app:c": 3, "temp:d": 4 }));
    shared.set(&room("x", "ann"), &delta).await.unwrap();
    shared.set(&room("x", "ann"), &state(json!({ "user:b": null }))).await.unwrap();
    store.close().await.unwrap();
    drop((store, shared));
    let shared = SharedState::new(open(folder.path()).await);
    assert_eq!(shared.get(&room("x", "ann")).await.unwrap(), state(json!({ "app:c": 3, "user:b": null })));
    assert_eq!(shared.get(&room("x", "bob")).await.unwrap(), state(json!({ "app:c": 3 })));
    assert_eq!(shared.get(&room("y", "ann")).await.unwrap(), state(json!({})));
    let much = state(json!({ "user:x": "x".repeat(300_000) }));
    assert!(shared.set(&room("x", "ann"), &much).await.is_err());
}

/// How often something is written where the log must not grow with it.
const WRITES: usize = 10_000;

#[tokio::test]
async fn values_that_change_often_keep_their_log_short() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let room = StateScopeKey { principal: Principal::owner(), app: "x".into(), user: "ann".into() };
    let (shared, mut expected) = (SharedState::new(Arc::clone(&store)), Map::new());
    for write in 0..WRITES {
        let delta = state(json!({ format!("user:{}", write % 7): write, format!("app:{}", write % 3): write }));
        shared.set(&room, &delta).await.unwrap();
        expected.extend(delta);
    }
    for scope in ["state/app/owner/x", "state/user/owner/x/ann"] {
        let length = read_scope_all(&*store, scope).await.unwrap().len();
        assert!((2..=longest_fact_log(7) + 1).contains(&length), "{scope}: {length}");
    }
    assert_eq!(shared.get(&room).await.unwrap(), expected);
    assert_eq!(SharedState::new(store).get(&room).await.unwrap(), expected, "who reads it for the first time");
}

#[tokio::test]
async fn artifacts_that_come_and_go_keep_their_index_short() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (artifacts, scope) = (Artifacts::new(Arc::clone(&store)), ArtifactScope::for_session(build::session(1)));
    for name in ["kept.txt", "kept.txt", "also.txt"] {
        artifacts.save(&scope, text(name, "stays")).await.unwrap();
    }
    for write in 0..WRITES / 2 {
        artifacts.save(&scope, text("draft.txt", &write.to_string())).await.unwrap();
        artifacts.delete(&scope, "draft.txt").await.unwrap();
    }
    let index = format!("artifacts/session/{}", build::session(1));
    let length = read_scope_all(&*store, &index).await.unwrap().len();
    assert!((2..=longest_fact_log(4) + 1).contains(&length), "{length}");
    let names: Vec<String> = artifacts.list(&scope).await.unwrap().into_iter().map(|kept| kept.name).collect();
    assert_eq!(names, ["also.txt", "kept.txt"]);
    assert_eq!(texts(&artifacts, &scope, "kept.txt").await, ["0=stays", "1=stays"]);
    assert_eq!(store.scopes("artifacts/content/", None, 10).await.unwrap().len(), 3, "what was deleted is gone");
    assert_eq!(artifacts.save(&scope, text("kept.txt", "more")).await.unwrap().number, 2);
}

/// The same in the store that is used, with as many writes as a slow disk takes; also what a newer version wrote stays.
#[tokio::test]
async fn a_shortened_log_survives_a_restart_and_one_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let room = |user: &str| StateScopeKey { principal: Principal::owner(), app: "x".into(), user: user.into() };
    let store = open(folder.path()).await;
    let shared = SharedState::new(Arc::clone(&store));
    let strange = json!({ "kind": "of another version" });
    gander_store::append_fact(&*store, "state/user/owner/x/bob", &strange).await.unwrap();
    for write in 0..longest_fact_log(0) + 40 {
        for user in ["ann", "bob"] {
            shared.set(&room(user), &state(json!({ "user:n": write }))).await.unwrap();
        }
    }
    store.close().await.unwrap();
    drop((store, shared));
    let store = open(folder.path()).await;
    let length = async |user: &str| read_scope_all(&*store, &format!("state/user/owner/x/{user}")).await.unwrap().len();
    assert!(length("ann").await < 60, "{}", length("ann").await);
    assert_eq!(length("bob").await, longest_fact_log(0) + 41);
    let shared = SharedState::new(Arc::clone(&store));
    for user in ["ann", "bob"] {
        assert_eq!(shared.get(&room(user)).await.unwrap(), state(json!({ "user:n": longest_fact_log(0) + 39 })));
    }
}
