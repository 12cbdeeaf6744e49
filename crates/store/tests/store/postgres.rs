//! What only the PostgreSQL store promises: other writers beside it, lost connections, restarts, copies.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gander_domain::{Entry, Seq, Timestamp};
use gander_store::postgres::postgres_list_statements;
use gander_store::{
    Append, BusyTimeout, Cursor, DeltaForm, Durability, Epoch, Health, PostgresOptions, PostgresStore, PostgresUrl,
    ScopeAppend, Store, StoreError, read_all, read_scope_all,
};
use gander_testkit::postgres::{DiskSync, PostgresServer, StopMode, make_schema, new_schema};
use gander_testkit::skip::skipped;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::story::Story;

const LONG_AFTER: Timestamp = Timestamp::from_micros(i64::MAX);

/// A new schema's URL; none if no PostgreSQL is installed.
fn schema_for(test: &str) -> Option<String> {
    let url = new_schema(&crate::SERVER);
    if url.is_none() {
        skipped(&format!("store::postgres::{test}"), "PostgreSQL is not installed");
    }
    url
}

/// A server of a test's own, which it may stop.
fn server_for(test: &str) -> Option<PostgresServer> {
    schema_for(test)?;
    Some(PostgresServer::start(DiskSync::Off).unwrap())
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::new(url.parse().unwrap())).await.unwrap()
}

#[tokio::test]
async fn big_lists_walk_an_index() {
    let Some(url) = schema_for("big_lists_walk_an_index") else { return };
    open(&url).await.close().await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    // Statistics of a store that is used: without any rows the server would rather look at them all.
    let filled = "INSERT INTO session (id, epoch, head, owner, workspace, agent, created_at, updated_at, \
         messages, title, search, state) \
         SELECT gen_random_uuid(), 1, 1, 'user' || n % 10, '/w' || n % 50, 'native', n, n, n % 7, 'Title', 'title', n % 3 FROM generate_series(1, 20000) n; \
         INSERT INTO run (id, session, first, began_at, started, ended, ended_at, ended_as) \
         SELECT gen_random_uuid(), id, 1, created_at, 1, 2, created_at, 3 FROM session; \
         INSERT INTO question SELECT gen_random_uuid(), session, id, 1, NULL, FALSE FROM run; \
         INSERT INTO entry SELECT id, n, n, 1, 0, '{}' FROM session, generate_series(1, 3) n; ANALYZE; \
         SET enable_bitmapscan = off";
    sqlx::raw_sql(filled).execute(&mut connection).await.unwrap();
    for sql in postgres_list_statements() {
        // As the server would plan it whatever the values: no list may be slow for one of them.
        let explain = AssertSqlSafe(format!("EXPLAIN (GENERIC_PLAN) {sql}"));
        let rows = match sqlx::raw_sql(explain).fetch_all(&mut connection).await {
            Ok(rows) => rows,
            // Before PostgreSQL 16: a prepared statement has the same plan.
            Err(_) => prepared_plan(&mut connection, &sql).await,
        };
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let scans = plan.iter().any(|line| line.contains("Seq Scan"));
        let sorts = plan.iter().any(|line| line.contains("Sort  (cost"));
        assert!(!scans && !sorts, "{sql}\n{}", plan.join("\n"));
    }
}

async fn prepared_plan(connection: &mut PgConnection, sql: &str) -> Vec<sqlx::postgres::PgRow> {
    let parameters = (1..20).take_while(|number| sql.contains(&format!("${number}"))).count();
    let nulls = vec!["NULL"; parameters].join(", ");
    let call = if parameters == 0 { String::new() } else { format!("({nulls})") };
    let script = format!("SET plan_cache_mode = force_generic_plan; PREPARE listed AS {sql}");
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *connection).await.unwrap();
    let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE listed{call}"));
    let rows = sqlx::raw_sql(explain).fetch_all(&mut *connection).await.unwrap();
    sqlx::raw_sql("DEALLOCATE listed").execute(connection).await.unwrap();
    rows
}

#[tokio::test]
async fn what_another_process_claims_or_writes_counts() {
    let Some(url) = schema_for("what_another_process_claims_or_writes_counts") else { return };
    let (one, two) = (open(&url).await, open(&url).await);
    let mut story = Story::new(1);
    story.create(&one).await;
    let mut other = story.clone();
    other.epoch = two.claim(story.session).await.unwrap().epoch;
    assert_eq!(story.titled("zombie").send(&one).await, Err(StoreError::Fenced { current: Epoch(2) }));
    other.titled("owner").send(&two).await.unwrap();
    assert_eq!(read_all(&one, story.session, DeltaForm::Exact).await.unwrap(), other.entries);
    // Both write to one scope: every fact has its place, and none is lost.
    let fact = |store: Arc<PostgresStore>, number: u64| async move {
        let facts = vec![json!(number)];
        let append = ScopeAppend { scope: "shared".to_owned(), at: Timestamp::default(), facts, after: None };
        store.append_scope(append, Durability::Barrier).await.unwrap()
    };
    let (one, two) = (Arc::new(one), Arc::new(two));
    let appends = (0..100).map(|number| fact(Arc::clone(if number % 2 == 0 { &one } else { &two }), number));
    let mut places: Vec<u64> = futures::future::join_all(appends).await.into_iter().map(|seq| seq.0).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=100).collect::<Vec<_>>());
    assert_eq!(read_scope_all(&*one, "shared").await.unwrap().len(), 100);
}

#[tokio::test]
async fn compaction_keeps_text_once() {
    let Some(url) = schema_for("compaction_keeps_text_once") else { return };
    let store = open(&url).await;
    let mut story = Story::new(1);
    story.create(&store).await;
    story.turn().send_in_pieces(&store, 4).await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let mut count = async |sort: &str| -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM entry WHERE {sort}"));
        sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0)
    };
    let chunks = count("kind = 1").await;
    assert!(chunks > 5);
    // Two processes at once: each run is compacted once.
    let beside = open(&url).await;
    let (done, too) = tokio::join!(store.maintain(LONG_AFTER), beside.maintain(LONG_AFTER));
    assert_eq!(done.unwrap().compacted + too.unwrap().compacted, chunks as u64);
    assert_eq!((count("kind = 1").await, count("kind = 2").await), (0, 1));
    assert_eq!(count("body LIKE '%39 %'").await, 1, "only in the whole message");
    assert_eq!(read_all(&store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
}

/// Every connection is ended again and again while sessions are written: each statement on its way is in doubt then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_lose_and_double_nothing() {
    let Some(url) = schema_for("lost_connections_lose_and_double_nothing") else { return };
    let store = Arc::new(open(&format!("{url}&application_name=ended_again_and_again")).await);
    let done = Arc::new(AtomicBool::new(false));
    let killer = tokio::spawn(end_connections(url, Arc::clone(&done)));
    let writers = (1..=8).map(|number| tokio::spawn(write_turns(Arc::clone(&store), number, 30)));
    let stories = futures::future::join_all(writers).await;
    done.store(true, Ordering::Relaxed);
    let killed = killer.await.unwrap();
    assert!(killed > 5, "connections were ended: {killed}");
    for story in stories {
        let story = story.unwrap();
        assert_eq!(read_all(&*store, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    }
}

async fn end_connections(url: String, done: Arc<AtomicBool>) -> u64 {
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE application_name = 'ended_again_and_again'";
    let mut killed = 0;
    while !done.load(Ordering::Relaxed) {
        killed += sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get::<i64, _>(0) as u64;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    killed
}

/// Writes turns as a hub does: patiently, one append after the other.
async fn write_turns(store: Arc<PostgresStore>, number: u64, turns: usize) -> Story {
    let mut story = Story::new(number);
    patiently(&store, story.append(Durability::Barrier), true).await;
    for _ in 0..turns {
        story.turn();
        for piece in story.fresh().chunks(9) {
            let append = Append::new(story.session, story.epoch, piece.to_vec(), Durability::Relaxed);
            patiently(&store, append, false).await;
        }
    }
    story
}

async fn patiently(store: &PostgresStore, mut append: Append, create: bool) {
    append.busy_timeout = BusyTimeout::Long;
    let last = append.entries.last().unwrap().seq;
    let stored = if create { store.create(append, vec![]).await } else { store.append(append).await };
    assert_eq!(stored.map(|stored| stored.head), Ok(last));
}

/// The database crashes and comes back under load: nothing uncommitted is shown, nothing shown is lost, health is honest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_database_loses_nothing_and_is_told() {
    let Some(server) = server_for("a_restart_of_the_database_loses_nothing_and_is_told") else { return };
    let url = make_schema(&server.url()).unwrap();
    let store = Arc::new(open(&url).await);
    let mut story = Story::new(100);
    story.create(&*store).await;
    let incarnation = store.incarnation();
    let tail = store.subscribe(story.session);
    for (round, mode) in (1u64..).zip([StopMode::Fast, StopMode::Immediate, StopMode::Immediate]) {
        let write = |number| tokio::spawn(write_turns(Arc::clone(&store), round * 1_000 + number, 60));
        let writers: Vec<_> = (1..=4).map(write).collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.stop(mode).unwrap();
        let stopped = Instant::now();
        // Whoever waits for an answer is told soon.
        let refused = store.append(story.clone().titled("refused").append(Durability::Barrier)).await;
        assert!(matches!(refused, Err(StoreError::Busy(_))), "{refused:?}");
        assert!(stopped.elapsed() < Duration::from_secs(12), "{:?}", stopped.elapsed());
        while store.health().await == Health::Ready {
            assert!(stopped.elapsed() < Duration::from_secs(6), "health says ready without a database");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(tail.peek_event(story.head()).is_none(), "nothing that is not stored is shown");
        server.restart().unwrap();
        let back = Instant::now();
        while store.health().await != Health::Ready {
            assert!(back.elapsed() < Duration::from_secs(5), "{:?}", store.health().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for writer in writers {
            let written = writer.await.unwrap();
            assert_eq!(read_all(&*store, written.session, DeltaForm::Exact).await.unwrap(), written.entries);
            store.delete(written.session, Timestamp::default()).await.unwrap();
        }
    }
    assert_eq!(store.incarnation(), incarnation, "cursors outlive a restart of the database");
}

#[tokio::test]
async fn what_waits_for_a_database_that_is_away_is_bounded() {
    let Some(server) = server_for("what_waits_for_a_database_that_is_away_is_bounded") else { return };
    let store = Arc::new(open(&server.url()).await);
    let mut stories: Vec<Story> = (1..=100).map(Story::new).collect();
    for story in &mut stories {
        story.create(&*store).await;
    }
    server.stop(StopMode::Immediate).unwrap();
    let append = |story: &mut Story| {
        story.opens().says(&"x".repeat(1 << 20));
        Append { busy_timeout: BusyTimeout::Long, ..story.append(Durability::Relaxed) }
    };
    let appends: Vec<Append> = stories.iter_mut().map(append).collect();
    let sent: Vec<_> = appends
        .into_iter()
        .map(|append| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(append).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restart().unwrap();
    let results = futures::future::join_all(sent).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    let stored = results.iter().filter(|result| result.is_ok()).count();
    assert!((60..70).contains(&stored), "of 100 MiB, about 64 wait: {stored}");
    for (story, result) in stories.iter().zip(results) {
        let entries: Vec<Entry> = read_all(&*store, story.session, DeltaForm::Exact).await.unwrap();
        assert_eq!(entries.len(), if result.is_ok() { 3 } else { 1 });
    }
}

/// A dump that is restored is a copy, whose end may be missing: it begins a new incarnation by itself.
#[tokio::test]
async fn a_restored_dump_is_a_new_incarnation() {
    let Some(server) = server_for("a_restored_dump_is_a_new_incarnation") else { return };
    let store = open(&server.url()).await;
    let mut story = Story::new(1);
    story.titled("kept").create(&store).await;
    let cursor = Cursor { incarnation: store.incarnation(), seq: Seq(2) };
    let again = open(&server.url()).await;
    assert_eq!(again.incarnation(), cursor.incarnation, "the same database is the same incarnation");
    again.close().await.unwrap();
    let dump = server.program("pg_dump").args(["--dbname", &server.url()]).output().unwrap();
    assert!(dump.status.success());
    server.psql("CREATE DATABASE restored").unwrap();
    let url = server.url().replace("/postgres?", "/restored?");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), dump.stdout).unwrap();
    let mut psql = std::process::Command::new("psql");
    let restored = psql.args(["--quiet", "--dbname", &url, "--file"]).arg(file.path()).output().unwrap();
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let copy = open(&url).await;
    assert!(copy.incarnation() > cursor.incarnation);
    assert_eq!(read_all(&copy, story.session, DeltaForm::Exact).await.unwrap(), story.entries);
    let refused = copy.validate_cursor(story.session, cursor).await;
    assert_eq!(refused, Err(StoreError::Truncated { asked: Seq(2), head: Seq(2) }));
    let bumped = PostgresStore::begin_incarnation(&url.parse().unwrap()).await.unwrap();
    assert!(bumped > copy.incarnation());
    assert_eq!(open(&url).await.incarnation(), bumped);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let Some(url) = schema_for("a_newer_schema_is_refused") else { return };
    open(&url).await.close().await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::query("UPDATE meta SET version = 99").execute(&mut connection).await.unwrap();
    let refused = PostgresStore::open(PostgresOptions::new(url.parse().unwrap())).await.err();
    assert!(matches!(refused, Some(StoreError::Newer { found: 99, .. })), "{refused:?}");
}

#[test]
fn no_text_shows_the_password() {
    let url: PostgresUrl = "postgres://anna:s3cret@db.example:5433/log?sslmode=require".parse().unwrap();
    let options = PostgresOptions::new(url.clone());
    assert_eq!(url.to_string(), "postgres://anna@db.example:5433/log");
    assert!(!format!("{url:?} {options:?}").contains("s3cret"));
    for wrong in ["postgres://anna:s3cret@db:port/log", "mysql://anna:s3cret@db/log", "postgres://anna:s3cret@db"] {
        let error = wrong.parse::<PostgresUrl>().unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
