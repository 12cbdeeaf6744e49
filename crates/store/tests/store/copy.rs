//! Moving everything between SQLite and PostgreSQL, there and back.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use gander_domain::{Principal, Seq, Timestamp};
use gander_store::{
    Alias, DeltaForm, Durability, PostgresOptions, PostgresStore, ScopeAppend, SessionSummary, SqliteStore, Store,
    StoreAddress, StoreError, StoreOptions, copy_store, read_all, read_scope_all, sessions_of,
};
use gander_testkit::postgres::new_schema;
use gander_testkit::skip::skipped;
use serde_json::json;

use crate::story::Story;

const LONG_AFTER: Timestamp = Timestamp::from_micros(i64::MAX);

/// Everything that a store says of what [`fill`] wrote.
#[derive(Debug, PartialEq)]
struct Content {
    summaries: Vec<SessionSummary>,
    entries: Vec<Vec<gander_domain::Entry>>,
    names: Vec<Alias>,
    facts: Vec<gander_store::ScopeEntry>,
    open_runs: usize,
    incarnation: u32,
    deleted_owner: Option<Principal>,
}

async fn fill(store: &SqliteStore) {
    for number in 1..=40 {
        let mut story = Story::new(number);
        story.titled(&format!("Tïtle \u{0} {number}")).turn().says_with_meta();
        let alias = name(&format!("name \u{0}\u{1}{number}"));
        store.create(story.append(Durability::Barrier), vec![alias]).await.unwrap();
        story.turn().send_in_pieces(store, 5).await;
    }
    while store.maintain(LONG_AFTER).await.unwrap().more {}
    let mut open = Story::new(50);
    open.run();
    open.asks();
    open.create(store).await;
    let mut gone = Story::new(51);
    gone.create(store).await;
    store.delete(gone.session, Timestamp::from_micros(5)).await.unwrap();
    let facts = (0..600).map(|number| json!({ "number": number, "text": "\u{0}ü" })).collect();
    let append = ScopeAppend { scope: "user/\u{0}anna".to_owned(), at: Timestamp::from_micros(7), facts, after: None };
    store.append_scope(append, Durability::Barrier).await.unwrap();
}

fn name(text: &str) -> Alias {
    Alias { principal: Principal::owner(), door: "adk".into(), namespace: "app".into(), text: text.to_owned() }
}

async fn content(store: &impl Store) -> Content {
    let query = gander_store::SessionQuery { limit: 1000, ..sessions_of(Principal::owner()) };
    let summaries = store.sessions(query).await.unwrap().sessions;
    let (mut entries, mut names) = (Vec::new(), Vec::new());
    for summary in &summaries {
        entries.push(read_all(store, summary.session, DeltaForm::Exact).await.unwrap());
        names.extend(store.aliases(summary.session).await.unwrap());
    }
    Content {
        summaries,
        entries,
        names,
        facts: read_scope_all(store, "user/\u{0}anna").await.unwrap(),
        open_runs: store.open_runs(None, 100).await.unwrap().len(),
        incarnation: store.incarnation(),
        deleted_owner: store.deleted_owner(Story::new(51).session).await.unwrap(),
    }
}

async fn sqlite(folder: &Path) -> SqliteStore {
    SqliteStore::open(StoreOptions::new(folder)).await.unwrap()
}

#[tokio::test]
async fn everything_arrives_in_postgresql_and_comes_back() {
    let Some(url) = new_schema(&crate::SERVER) else {
        return skipped("store::copy::everything_arrives_in_postgresql_and_comes_back", "PostgreSQL is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let (from, back) = (folder.path().join("from"), folder.path().join("back"));
    let store = sqlite(&from).await;
    store.new_incarnation().await.unwrap();
    fill(&store).await;
    let told = content(&store).await;
    assert_eq!((told.summaries.len(), told.facts.len(), told.open_runs), (41, 600, 1));
    let (source, target): (StoreAddress, StoreAddress) = (StoreAddress::Sqlite(from), url.parse().unwrap());
    let in_use = copy_store(&source, &target, |_, _| {}).await;
    assert!(matches!(in_use, Err(StoreError::Locked(_))), "{in_use:?}");
    store.close().await.unwrap();
    let mut tables = Vec::new();
    let there = copy_store(&source, &target, |table, _| tables.push(table.to_owned())).await.unwrap();
    tables.dedup();
    assert_eq!(tables, ["sessions", "entries", "names", "facts", "indexes"]);
    assert_eq!((there.rows[0], there.rows[3]), (("sessions", 42), ("facts", 600)));
    let again = copy_store(&source, &target, |_, _| {}).await;
    assert!(matches!(again, Err(StoreError::Invalid(_))), "a target that is not empty: {again:?}");

    let store = PostgresStore::open(PostgresOptions::new(url.parse().unwrap())).await.unwrap();
    assert_eq!(content(&store).await, told);
    store.close().await.unwrap();

    let back = StoreAddress::Sqlite(back);
    let returned = copy_store(&target, &back, |_, _| {}).await.unwrap();
    assert_eq!(returned, there);
    let StoreAddress::Sqlite(folder) = back else { panic!("a folder") };
    let store = sqlite(&folder).await;
    assert_eq!(content(&store).await, told);
    // It goes on: every log and scope ends where it did.
    let session = Story::new(1).session;
    let head = told.entries.iter().find(|entries| entries.len() > 3).map(|entries| entries.len() as u64).unwrap();
    assert_eq!(store.claim(session).await.unwrap().head, Seq(head));
}
