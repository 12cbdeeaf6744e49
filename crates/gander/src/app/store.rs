//! Opens the store that the settings name.

use std::sync::Arc;

use anyhow::Context as _;
use gander_domain::IdGenerator as _;
use gander_store::clock::SystemIds;
use gander_store::{NodeId, PostgresOptions, PostgresStore, SqliteStore, Store, StoreOptions};

use super::former_node::NodeLock;
use crate::config::Config;

/// The store of the settings, for a command that has it to itself.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    open_store_as(config, None).await
}

/// The same, for a server: over a database it is one of several nodes. A server that is started again is another node, which
/// takes over at once from the one that it was.
pub(super) async fn open_server_store(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Option<NodeLock>)> {
    let node = NodeId(SystemIds.next_id());
    let store = open_store_as(config, Some(node)).await?;
    let Some(cluster) = store.cluster() else { return Ok((store, None)) };
    let lock = NodeLock::take(&config.paths, node).context("the node cannot be noted in the data directory")?;
    if let Some(former) = lock.as_ref().and_then(|lock| lock.former) {
        cluster.end_lease_of(former).await.context("the node before this one cannot be ended")?;
    }
    Ok((store, lock))
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
