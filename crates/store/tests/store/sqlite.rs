//! What only the SQLite store promises: the file, its safety, its shape, and how it fails.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use gander_domain::{Entry, Event, Message, Part, Principal, Seq, Timestamp};
use gander_store::sqlite::Faults;
use gander_store::{
    Append, BusyTimeout, Cursor, DeltaForm, Durability, Epoch, Health, Limit, SqliteStore, Store, StoreError,
    StoreOptions, TailEvent, read_all, sessions_of,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use crate::story::Story;

const LONG_AFTER: Timestamp = Timestamp::from_micros(i64::MAX);

#[tokio::test]
async fn a_failed_commit_shows_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let store = open(StoreOptions { faults: faults.clone(), ..StoreOptions::new(directory.path()) }).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let tail = store.subscribe(story.session);
    faults.break_disk();
    story.titled("lost");
    assert!(matches!(story.send(&store).await, Err(StoreError::ReadOnly(_))));
    // Who follows is told that it waits in vain, and nothing else.
    assert!(
        matches!(tail.peek_event(Seq(1)), Some(TailEvent::Failed(_))),
        "nothing was committed, so nothing may be seen"
    );
}

#[tokio::test]
async fn a_broken_disk_makes_it_read_only_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let store = open(StoreOptions { faults: faults.clone(), ..StoreOptions::new(directory.path()) }).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    assert_eq!(store.health().await, Health::Ready);
    faults.break_disk();
    story.titled("lost").send(&store).await.unwrap_err();
    assert!(matches!(store.health().await, Health::ReadOnly(_)));
    assert!(matches!(store.claim(story.session).await, Err(StoreError::ReadOnly(_))));
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries[..1]);
    store.close().await.unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    assert_eq!(store.head(story.session).await.unwrap(), Seq(1));
    assert_eq!(store.health().await, Health::Ready);
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions { max_pages: Some(120), ..StoreOptions::new(directory.path()) }).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let mut acknowledged = Seq(1);
    let error = loop {
        match story.titled(&"x".repeat(5000)).send(&store).await {
            Ok(committed) => acknowledged = committed.head,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::ReadOnly(_)), "{error}");
    assert!(acknowledged > Seq(10));
    let barrier = Append::new(story.session, Epoch::FIRST, vec![], Durability::Barrier);
    assert!(matches!(store.append(barrier).await, Err(StoreError::ReadOnly(_))));
    store.close().await.unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let read = read_all(&store, story.session, DeltaForm::Exact).await.unwrap();
    assert_eq!(read, story.entries[..acknowledged.0 as usize]);
}

#[tokio::test]
async fn only_one_process_opens_it_and_the_other_is_told_which() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let second = SqliteStore::open(StoreOptions::new(directory.path())).await.err();
    assert_eq!(second, Some(StoreError::Locked(std::process::id().to_string())));
    store.close().await.unwrap();
    open(StoreOptions::new(directory.path())).await;
}

#[tokio::test]
async fn files_are_for_the_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("new");
    let store = open(StoreOptions::new(&data)).await;
    Story::new(1).create(&store).await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for file in data.read_dir().unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn an_epoch_that_changed_in_the_file_fences_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let mut connection = raw(directory.path()).await;
    sqlx::query("UPDATE session SET epoch = 7").execute(&mut connection).await.unwrap();
    assert_eq!(story.titled("zombie").send(&store).await, Err(StoreError::Fenced { current: Epoch(7) }));
    assert_eq!(store.head(story.session).await.unwrap(), Seq(1));
}

#[tokio::test]
async fn adjacent_deltas_share_a_row_and_a_statement() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.run();
    story.opens().create(&store).await;
    let before = store.stats();
    (0..500).for_each(|_| {
        story.says("word ");
    });
    let pieces: Vec<_> = story.fresh().chunks(10).map(<[Entry]>::to_vec).collect();
    let append = |piece| {
        let append = Append::new(story.session, story.epoch, piece, Durability::Relaxed);
        store.append(Append { busy_timeout: BusyTimeout::Long, ..append })
    };
    // While somebody else has the file, all of them wait.
    let mut other = raw(directory.path()).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let mut results = std::pin::pin!(futures::future::join_all(pieces.into_iter().map(append)));
    assert!(futures::poll!(results.as_mut()).is_pending());
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let results = results.await;
    assert!(results.iter().all(Result::is_ok));
    let after = store.stats();
    assert_eq!(after.deltas - before.deltas, 500);
    let (rows, commits) = (after.rows - before.rows, after.commits - before.commits);
    assert!(rows <= 3 && commits <= 3, "what waits together is stored together: {rows} rows, {commits} commits");
    assert_eq!(after.barriers, before.barriers);
}

#[tokio::test]
async fn compaction_keeps_text_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions { grace: Duration::from_secs(60), ..StoreOptions::new(directory.path()) }).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().send_in_pieces(&store, 4).await;
    let end = story.entries.last().unwrap().at.as_micros();
    let early = store.maintain(Timestamp::from_micros(end + 59_000_000)).await.unwrap();
    assert_eq!((early.compacted, early.more), (0, false), "the grace period holds");
    let chunks = count(directory.path(), "kind = 1").await;
    let done = store.maintain(Timestamp::from_micros(end + 61_000_000)).await.unwrap();
    assert_eq!((done.compacted, done.more), (chunks, true));
    assert_eq!((count(directory.path(), "kind = 1").await, count(directory.path(), "kind = 2").await), (0, 1));
    assert_eq!(count(directory.path(), "body LIKE '%39 %'").await, 1, "only in the whole message");
    assert!(!store.maintain(LONG_AFTER).await.unwrap().more);
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
}

#[tokio::test]
async fn deltas_that_their_message_does_not_hold_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.run();
    story.opens().says("what was ").says("shown").closes();
    let last = story.entries.last_mut().unwrap();
    let Event::MessageDone { message: Message { parts, .. } } = &mut last.event else { panic!("it was closed") };
    *parts = vec![Part::text("what was kept")];
    story.ends().send(&store).await.unwrap();
    while store.maintain(LONG_AFTER).await.unwrap().more {}
    assert_eq!(count(directory.path(), "kind = 2").await, 0);
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
}

#[tokio::test]
async fn deleted_text_leaves_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.titled("unforgettable").turn().create(&store).await;
    store.delete(story.session, Timestamp::default()).await.unwrap();
    while store.maintain(LONG_AFTER).await.unwrap().more {}
    assert_eq!(count(directory.path(), "1").await, 0);
    store.close().await.unwrap();
    let file = std::fs::read(directory.path().join("log.db")).unwrap();
    assert!(!file.windows(13).any(|window| window == b"unforgettable"));
}

/// Pages of what is deleted leave the file while the store runs: the write-ahead log as well, and files of earlier
/// versions, which did not give pages back.
#[tokio::test]
async fn deleted_pages_are_given_back_while_it_runs() {
    for earlier_version in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        if earlier_version {
            let mut connection = raw(directory.path()).await;
            let schema = include_str!("../../migrations/sqlite/0001_log.sql");
            sqlx::raw_sql(schema).execute(&mut connection).await.unwrap();
            sqlx::raw_sql("PRAGMA user_version = 1").execute(&mut connection).await.unwrap();
        }
        let store = open(StoreOptions::new(directory.path())).await;
        let mut story = Story::new(1);
        story.create(&store).await;
        for _ in 0..40 {
            story.push(Event::Unknown("the secret word ".repeat(4_000).into())).send(&store).await.unwrap();
        }
        assert!(on_disk(directory.path(), "the secret word"));
        store.delete(story.session, Timestamp::default()).await.unwrap();
        while store.maintain(LONG_AFTER).await.unwrap().more {}
        assert!(!on_disk(directory.path(), "the secret word"), "earlier version: {earlier_version}");
        let size = std::fs::metadata(directory.path().join("log.db")).unwrap().len();
        assert!(size < 200 << 10, "earlier version: {earlier_version}, bytes: {size}");
        store.close().await.unwrap();
    }
}

fn on_disk(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[tokio::test]
async fn a_power_cut_begins_a_new_life() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    let cursor = Cursor { incarnation: store.incarnation(), seq: Seq(1) };
    // As it would be found after another boot: never closed, and by a machine of another name.
    let mut connection = raw(directory.path()).await;
    store.close().await.unwrap();
    sqlx::query("UPDATE meta SET clean = 0, boot = 'another'").execute(&mut connection).await.unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    assert_eq!(store.incarnation(), cursor.incarnation + 1);
    let refused = store.validate_cursor(story.session, cursor).await;
    assert_eq!(refused, Err(StoreError::Truncated { asked: Seq(1), head: Seq(1) }));
    assert_eq!(store.new_incarnation().await.unwrap(), cursor.incarnation + 2);
    assert_eq!(store.incarnation(), cursor.incarnation + 2);
}

#[tokio::test]
async fn an_older_schema_is_brought_up_and_a_newer_one_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = raw(directory.path()).await;
    sqlx::raw_sql(include_str!("../../migrations/sqlite/0001_log.sql")).execute(&mut connection).await.unwrap();
    sqlx::raw_sql(include_str!("../fixtures/log_v1.sql")).execute(&mut connection).await.unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let cards = store.sessions(sessions_of(Principal::owner())).await.unwrap().sessions;
    assert_eq!(cards.iter().map(|card| card.title.as_str()).collect::<Vec<_>>(), ["From version one"]);
    assert_eq!(cards[0].usage, None, "what was not counted is not known");
    let entries = read_all(&store, cards[0].session, DeltaForm::Exact).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert_eq!(store.snapshot(cards[0].session, 1, Seq(7)).await.unwrap(), None);
    let claim = store.claim(cards[0].session).await.unwrap();
    assert_eq!((claim.epoch, claim.head), (Epoch(2), Seq(7)));
    store.close().await.unwrap();
    sqlx::query("PRAGMA user_version = 99").execute(&mut connection).await.unwrap();
    let refused = SqliteStore::open(StoreOptions::new(directory.path())).await.err();
    assert_eq!(refused, Some(StoreError::Newer { found: 99, known: 7 }));
}

#[tokio::test]
async fn a_new_log_takes_nothing_of_one_that_is_gone() {
    let (earlier, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(StoreOptions::new(earlier.path())).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    std::fs::copy(earlier.path().join("log.db-wal"), directory.path().join("log.db-wal")).unwrap();
    std::fs::write(directory.path().join("log.db.draft"), "half of one").unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    assert!(store.sessions(sessions_of(Principal::owner())).await.unwrap().sessions.is_empty());
    story = Story::new(1);
    story.create(&store).await;
    assert_eq!(store.head(story.session).await.unwrap(), Seq(1));
}

#[tokio::test]
async fn big_lists_walk_an_index() {
    let directory = tempfile::tempdir().unwrap();
    open(StoreOptions::new(directory.path())).await.close().await.unwrap();
    let mut connection = raw(directory.path()).await;
    for sql in gander_store::sqlite::sqlite_list_statements() {
        let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")));
        let rows = explain.fetch_all(&mut connection).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(!plan.is_empty());
        for step in &plan {
            assert!(!step.contains("TEMP B-TREE"), "sorts: {sql}\n{plan:#?}");
            let walks_partial_index = step.contains("USING COVERING INDEX") || step.contains("USING INDEX");
            assert!(!step.starts_with("SCAN") || walks_partial_index, "scans: {sql}\n{plan:#?}");
        }
    }
}

#[tokio::test]
async fn the_write_ahead_log_stays_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    for _ in 0..40 {
        let mut append = story.push(Event::Unknown("y".repeat(2 << 20).into())).append(Durability::Relaxed);
        // On a slow disk the writer may still be at a checkpoint.
        append.busy_timeout = BusyTimeout::Long;
        store.append(append).await.unwrap();
    }
    let length = directory.path().join("log.db-wal").metadata().unwrap().len();
    assert!(length < 72 << 20, "80 MiB were written: {length}");
}

#[tokio::test]
async fn a_big_append_is_one_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(StoreOptions::new(directory.path())).await;
    let mut story = Story::new(1);
    for _ in 0..9000 {
        story.titled("many");
    }
    assert_eq!(store.health().await, Health::Ready);
    let before = store.stats().commits;
    story.create(&store).await;
    assert_eq!(store.stats().commits, before + 1);
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    let limit = Limit { entries: usize::MAX, bytes: 4096 };
    assert!(store.read(story.session, Seq::ZERO, limit, DeltaForm::Exact).await.unwrap().len() < 100);
}

async fn open(options: StoreOptions) -> SqliteStore {
    SqliteStore::open(options).await.unwrap()
}

async fn raw(directory: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(directory.join("log.db")).create_if_missing(true);
    options.foreign_keys(false).connect().await.unwrap()
}

/// How many rows of entries there are of a sort.
async fn count(directory: &Path, sort: &str) -> u64 {
    let mut connection = raw(directory).await;
    let query = AssertSqlSafe(format!("SELECT count(*) FROM entry WHERE {sort}"));
    let count: i64 = sqlx::query(query).fetch_one(&mut connection).await.unwrap().get(0);
    connection.close().await.unwrap();
    count as u64
}
