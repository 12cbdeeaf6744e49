//! Moves everything from one store to another and verifies that it arrived: rows as they are, with counts and a digest.
//!
//! Only what cannot be made again is copied: ids and epochs of sessions, entries, names and facts. Runs, questions and
//! summaries are folded from the entries at the target, snapshots are a cache.

mod postgres;
mod row;
mod sqlite;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use self::postgres::PostgresSide;
use self::row::{CopyDigest, CopyRow, CopyTable, TABLES};
use self::sqlite::SqliteSide;
use super::postgres::is_postgres_url;
use super::{PostgresOptions, PostgresStore, PostgresUrl, SqliteStore, Store, StoreError, StoreOptions};

/// Rows that are moved in one go.
const PAGE_ROWS: usize = 500;

/// Where a store is.
#[derive(Clone, Debug)]
pub enum StoreAddress {
    /// The data directory with its file.
    Sqlite(PathBuf),
    Postgres(Box<PostgresUrl>),
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Rows by table: sessions, entries, names, facts.
    pub rows: Vec<(&'static str, u64)>,
    /// The SHA-256 of all of them, read back from the target.
    pub digest: String,
}

impl FromStr for StoreAddress {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        if is_postgres_url(text) {
            return Ok(Self::Postgres(Box::new(text.parse()?)));
        }
        Ok(Self::Sqlite(PathBuf::from(text)))
    }
}

/// Without a password.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(folder) => folder.display().fmt(f),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

/// One end of a copy, in a transaction.
enum CopySide {
    Sqlite(SqliteSide),
    Postgres(PostgresSide),
}

impl CopySide {
    async fn open(address: &StoreAddress) -> Result<Self, StoreError> {
        match address {
            StoreAddress::Sqlite(folder) => SqliteSide::open(folder).await.map(Self::Sqlite),
            StoreAddress::Postgres(url) => PostgresSide::open(url).await.map(Self::Postgres),
        }
    }

    async fn page(&mut self, table: &CopyTable, after: Option<&CopyRow>) -> Result<Vec<CopyRow>, StoreError> {
        match self {
            Self::Sqlite(side) => side.page(table, after, PAGE_ROWS).await,
            Self::Postgres(side) => side.page(table, after, PAGE_ROWS).await,
        }
    }

    async fn insert(&mut self, table: &CopyTable, rows: &[CopyRow]) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(side) => side.insert(table, rows).await,
            Self::Postgres(side) => side.insert(table, rows).await,
        }
    }

    async fn incarnation(&mut self) -> Result<i64, StoreError> {
        match self {
            Self::Sqlite(side) => side.incarnation().await,
            Self::Postgres(side) => side.incarnation().await,
        }
    }

    async fn commit(self, incarnation: i64) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(side) => side.commit(incarnation).await,
            Self::Postgres(side) => side.commit(incarnation).await,
        }
    }
}

/// Copies everything into an empty store. `progress` is told a table's name and how many of its rows are there, now and then.
/// No server may use either of them. If anything fails, the target stays empty.
pub async fn copy_store(
    from: &StoreAddress,
    to: &StoreAddress,
    mut progress: impl FnMut(&str, u64),
) -> Result<CopyReport, StoreError> {
    if let StoreAddress::Sqlite(folder) = from
        && !folder.join("log.db").exists()
    {
        return Err(StoreError::Invalid(format!("there are no sessions in {}", folder.display())));
    }
    let (mut source, mut target) = (CopySide::open(from).await?, CopySide::open(to).await?);
    for table in TABLES {
        if !target.page(table, None).await?.is_empty() {
            return Err(StoreError::Invalid(format!("the target is not empty: {to}")));
        }
    }
    let mut sent = CopyDigest::default();
    let mut counts = Vec::new();
    for table in TABLES {
        let mut count = 0;
        let mut page = source.page(table, None).await?;
        while let Some(last) = page.last().cloned() {
            page.iter().for_each(|row| sent.add_row(table, row));
            target.insert(table, &page).await?;
            count += page.len() as u64;
            progress(table.shown_as, count);
            page = source.page(table, Some(&last)).await?;
        }
        counts.push((table.shown_as, count));
    }
    let (arrived, digest) = read_back_copy(&mut target).await?;
    let sent = sent.into_text();
    if (&arrived, &digest) != (&counts, &sent) {
        return Err(StoreError::Corrupt(format!("the copy differs: {arrived:?} {digest}, sent: {counts:?} {sent}")));
    }
    let incarnation = source.incarnation().await?;
    drop(source);
    target.commit(incarnation).await?;
    progress("indexes", 0);
    rebuild_copied_folds(to).await?;
    Ok(CopyReport { rows: counts, digest })
}

/// What is in a store, by table, and its digest.
async fn read_back_copy(side: &mut CopySide) -> Result<(Vec<(&'static str, u64)>, String), StoreError> {
    let (mut digest, mut counts) = (CopyDigest::default(), Vec::new());
    for table in TABLES {
        let (mut count, mut last) = (0, None);
        loop {
            let page = side.page(table, last.as_ref()).await?;
            page.iter().for_each(|row| digest.add_row(table, row));
            count += page.len() as u64;
            match page.into_iter().next_back() {
                Some(row) => last = Some(row),
                None => break,
            }
        }
        counts.push((table.shown_as, count));
    }
    Ok((counts, digest.into_text()))
}

async fn rebuild_copied_folds(address: &StoreAddress) -> Result<(), StoreError> {
    match address {
        StoreAddress::Sqlite(folder) => {
            let store = SqliteStore::open(StoreOptions::new(folder)).await?;
            store.rebuild_folds().await?;
            store.close().await
        }
        StoreAddress::Postgres(url) => {
            let store = PostgresStore::open(PostgresOptions::new(PostgresUrl::clone(url))).await?;
            store.rebuild_folds().await?;
            store.close().await
        }
    }
}
