//! Opens the store that the settings name.

use std::sync::Arc;

use anyhow::Context as _;
use gander_domain::IdGenerator as _;
use gander_store::clock::SystemIds;
use gander_store::{NodeId, PostgresOptions, PostgresStore, SqliteStore, Store, StoreOptions};

use crate::config::Config;

/// The store of the settings, for a command that has it to itself.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    open_store_as(config, None).await
}

/// The same, for a server: over a database it is one of several nodes. A server that is started again is another node.
pub(super) async fn open_server_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    open_store_as(config, Some(NodeId(SystemIds.next_id()))).await
}

/// The PostgreSQL database of the settings, or else the file in the data directory.
async fn open_store_as(config: &Config, node: Option<NodeId>) -> anyhow::Result<Arc<dyn Store>> {
    match &config.sections.store.url {
        None => {
            let options = StoreOptions::new(config.paths.data_directory());
            Ok(Arc::new(SqliteStore::open(options).await.context("the log cannot be opened")?))
        }
        Some(url) => {
            let hints = config.sections.cluster.hints;
            let options = PostgresOptions { node, hints, ..PostgresOptions::new(url.parse()?) };
            let opened = PostgresStore::open(options).await;
            Ok(Arc::new(opened.with_context(|| format!("the store cannot be opened: {url}"))?))
        }
    }
}
