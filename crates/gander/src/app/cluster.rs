//! This server as one of several over one database.

use std::sync::Arc;

use gander_runtime::hub::{ClusterOptions, NodeRole};
use gander_services::server_vault::{ClusterKeys, ServerVault};
use gander_services::shared_credentials::SharedCredentials;
use gander_services::token::{TokenId, owner_token};
use gander_services::vault::Vault;
use gander_services::workspaces::Workspaces;
use gander_store::Store;

use crate::config::Config;

/// What this node is to the others, by its settings.
pub(super) fn cluster_options(config: &Config, workspaces: Workspaces) -> ClusterOptions {
    let (mut section, private) = (config.sections.cluster.clone(), workspaces.clone());
    // Sessions name their folders without symbolic links.
    let real: Vec<_> = section.shared.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    section.shared.extend(real);
    let label = section.node_label();
    let pin = label.clone();
    ClusterOptions {
        role: section.role,
        label,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        times: section.times(),
        // A private folder is made anew where it is missing: such sessions move, and are told what they left behind.
        pinned_to: Arc::new(move |view| {
            let moves = private.has_private_folder(view) || section.is_shared(&view.workspace);
            (!moves).then(|| pin.clone())
        }),
        private_folder: Arc::new(move |view| workspaces.find_private_folder(view)),
    }
}

/// What nodes have in common: secrets if they have a key, tokens and browsers in any case.
pub(super) struct SharedSecrets {
    pub(super) vault: ServerVault,
    pub(super) keys: Option<ClusterKeys>,
    pub(super) credentials: Option<SharedCredentials>,
}

impl SharedSecrets {
    /// Opens all of it. The owner's token of this node counts at every node from then on.
    pub(super) async fn load(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<Self> {
        let own = Vault::open(config.paths.secrets_file())?;
        if store.cluster().is_none() {
            return Ok(Self { vault: ServerVault::of_node(own), keys: None, credentials: None });
        }
        let section = &config.sections.cluster;
        let keys = section.read_keys()?;
        let vault = match keys.clone() {
            Some(keys) => ServerVault::of_cluster(own, Arc::clone(store), keys).await?,
            None => ServerVault::of_node(own),
        };
        let credentials = SharedCredentials::load(Arc::clone(store)).await?;
        let owner = TokenId::of_secret(&owner_token(&config.paths)?);
        credentials.register_owner_token(owner, &section.node_label()).await?;
        Ok(Self { vault, keys, credentials: Some(credentials) })
    }
}

/// True if this node starts what is due by the clock.
pub(super) fn runs_schedules(role: Option<NodeRole>) -> bool {
    role != Some(NodeRole::Gateway)
}
