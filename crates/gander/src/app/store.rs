//! Opens the store that the settings name.

use std::sync::Arc;

use anyhow::Context as _;
use gander_store::{PostgresOptions, PostgresStore, SqliteStore, Store, StoreOptions};

use crate::config::Config;

/// The PostgreSQL database of the settings, or else the file in the data directory.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match &config.sections.store.url {
        None => {
            let options = StoreOptions::new(config.paths.data_directory());
            Ok(Arc::new(SqliteStore::open(options).await.context("the log cannot be opened")?))
        }
        Some(url) => {
            let options = PostgresOptions::new(url.parse()?);
            let opened = PostgresStore::open(options).await;
            Ok(Arc::new(opened.with_context(|| format!("the store cannot be opened: {url}"))?))
        }
    }
}
