//! How many deltas per second the PostgreSQL store takes, beside the same rows inserted raw in batches, in the same run.
//!
//! `cargo run --release -p gander-store --example postgres_throughput [SECONDS]` starts a server of its own that syncs to the disk.
//! It prints and asserts nothing.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gander_domain::{DeltaKind, Entry, Event, MessageId, Principal, Seq, SessionId, Settings, Timestamp};
use gander_store::{Append, BusyTimeout, Durability, Epoch, PostgresOptions, PostgresStore, Store};
use gander_testkit::postgres::{DiskSync, PostgresServer, make_schema};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

/// Sessions that stream at the same time, each with one append on its way, as the hub has it.
const SESSIONS: u64 = 200;

/// Deltas of one append: what gathers while the one before is stored.
const DELTAS: u64 = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let server = PostgresServer::start(DiskSync::On)?;
    for _ in 0..2 {
        let raw = measure_raw(&server, time).await?;
        let (store, appends) = measure_store(&server, time).await?;
        println!(
            "raw {:.0} deltas/s, store {:.0} deltas/s, ratio {:.2}; {:.1} us of database per delta raw, {:.1} through the store; \
             {:.1} us of this process; {appends:.0} appends per commit",
            raw.rate,
            store.rate,
            store.rate / raw.rate,
            raw.database,
            store.database,
            store.own,
        );
    }
    Ok(())
}

struct Figures {
    rate: f64,
    /// Microseconds of the database's processors per delta.
    database: f64,
    /// Of this process's.
    own: f64,
}

/// Chunk rows of the same size and form, as many per statement as sessions stream.
async fn measure_raw(server: &PostgresServer, time: Duration) -> anyhow::Result<Figures> {
    let url = make_schema(&server.url())?;
    let mut connection = PgConnection::connect(&url).await?;
    sqlx::raw_sql(
        "CREATE TABLE raw (session UUID, first BIGINT, last BIGINT, body TEXT, PRIMARY KEY (session, first))",
    )
    .execute(&mut connection)
    .await?;
    let ids: Vec<Uuid> = (0..SESSIONS).map(|_| Uuid::now_v7()).collect();
    let body = serde_json::json!({
        "message": Uuid::now_v7(), "part": 0, "growth": "text", "times": { "at": 1 },
        "cuts": vec![6; DELTAS as usize], "text": "word, ".repeat(DELTAS as usize),
    });
    let body = body.to_string();
    let (began, before) = (Instant::now(), server.processor_time()?);
    let mut first = 1i64;
    while began.elapsed() < time {
        let (firsts, lasts) = (vec![first; ids.len()], vec![first + DELTAS as i64 - 1; ids.len()]);
        sqlx::query("INSERT INTO raw SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[])")
            .bind(&ids)
            .bind(firsts)
            .bind(lasts)
            .bind(vec![body.clone(); ids.len()])
            .execute(&mut connection)
            .await?;
        first += DELTAS as i64;
    }
    let deltas = (first - 1) as f64 * SESSIONS as f64;
    let spent = server.processor_time()?.checked_sub(before).context("processes of the server ended")?;
    Ok(Figures { rate: deltas / began.elapsed().as_secs_f64(), database: spent.as_secs_f64() * 1e6 / deltas, own: 0.0 })
}

/// As the hub writes: every session sends its next append when the one before is stored.
async fn measure_store(server: &PostgresServer, time: Duration) -> anyhow::Result<(Figures, f64)> {
    let url = make_schema(&server.url())?;
    let store = Arc::new(PostgresStore::open(PostgresOptions::new(url.parse()?)).await?);
    let creations = (0..SESSIONS).map(|_| create(&store));
    let sessions = futures::future::try_join_all(creations).await?;
    let (stats, before, own) = (store.stats(), server.processor_time()?, own_processor_time()?);
    let began = Instant::now();
    let writers = sessions.into_iter().map(|session| tokio::spawn(stream(Arc::clone(&store), session, began + time)));
    for writer in futures::future::join_all(writers).await {
        writer??;
    }
    let elapsed = began.elapsed().as_secs_f64();
    let (after, deltas) = (store.stats(), (store.stats().deltas - stats.deltas) as f64);
    let spent = server.processor_time()?.checked_sub(before).context("processes of the server ended")?;
    let own = own_processor_time()?.saturating_sub(own);
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / deltas;
    let figures = Figures { rate: deltas / elapsed, database: micros(spent), own: micros(own) };
    Ok((figures, deltas / DELTAS as f64 / (after.commits - stats.commits) as f64))
}

async fn create(store: &PostgresStore) -> anyhow::Result<SessionId> {
    let session = SessionId::new(Uuid::now_v7());
    let (owner, settings) = (Principal::owner(), Settings::new("native", "code"));
    let event = Event::SessionCreated {
        session,
        owner,
        workspace: "/workspace".to_owned(),
        folders: vec![],
        settings,
        parent: None,
        inherited: Default::default(),
    };
    let entry = Entry { seq: Seq(1), at: Timestamp::from_micros(1), run: None, event, meta: None };
    store.create(Append::new(session, Epoch::FIRST, vec![entry], Durability::Barrier), vec![]).await?;
    Ok(session)
}

async fn stream(store: Arc<PostgresStore>, session: SessionId, until: Instant) -> anyhow::Result<()> {
    let message = MessageId::new(Uuid::now_v7());
    let mut next = 2;
    while Instant::now() < until {
        let delta = |seq| {
            let event = Event::PartDelta { message, part: 0, growth: DeltaKind::Text, text: "word, ".to_owned() };
            Entry { seq: Seq(seq), at: Timestamp::from_micros(1), run: None, event, meta: None }
        };
        let entries = (next..next + DELTAS).map(delta).collect();
        let append = Append::new(session, Epoch::FIRST, entries, Durability::Relaxed);
        store.append(Append { busy_timeout: BusyTimeout::Long, ..append }).await?;
        next += DELTAS;
    }
    Ok(())
}

fn own_processor_time() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(") ").context("no statistics")?.1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
