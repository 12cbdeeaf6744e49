//! What the server keeps beside its sessions, read from the store and the settings when it starts.

use std::sync::Arc;

use gander_agent::modes::AgentCatalog;
use gander_mcp::Keyring;
use gander_services::apps::Apps;
use gander_services::artifacts::Artifacts;
use gander_services::extensions::{self, Extensions, ExtensionsConfig, NetworkStore, PinStore, VaultTokenStore};
use gander_services::grants::Grants;
use gander_services::memory::Memories;
use gander_services::recipes::Recipes;
use gander_services::schedules::Schedules;
use gander_services::server_vault::ServerVault;
use gander_services::shared_credentials::SharedCredentials;
use gander_services::telemetry::Telemetry;
use gander_services::trust::Trust;
use gander_store::Store;
use gander_tools::FileAccess;
use gander_tools::protected::ProtectedFiles;
use gander_tools::sandbox::Sandbox;

use super::build::{build_agent_catalog, build_extensions_config, build_file_access, load_schedules};
use super::cluster::SharedSecrets;
use crate::config::Config;

/// What the server keeps beside its sessions.
pub(super) struct StoredServices {
    pub(super) protected: ProtectedFiles,
    pub(super) files: FileAccess,
    pub(super) grants: Grants,
    pub(super) trust: Trust,
    pub(super) extensions: Arc<Extensions>,
    pub(super) recipes: Arc<Recipes>,
    pub(super) schedules: Arc<Schedules>,
    pub(super) apps: Apps,
    pub(super) artifacts: Artifacts,
    pub(super) memories: Memories,
    pub(super) telemetry: Telemetry,
    pub(super) agent_catalog: Arc<AgentCatalog>,
    pub(super) credentials: Option<SharedCredentials>,
}

impl StoredServices {
    pub(super) async fn load(
        config: &Config,
        store: &Arc<dyn Store>,
        shared: &SharedSecrets,
        sandbox: Sandbox,
        telemetry: Telemetry,
    ) -> anyhow::Result<Self> {
        let trust = Trust::load(Arc::clone(store)).await?;
        let files = build_file_access(config);
        let artifacts = Artifacts::new(Arc::clone(store));
        Ok(Self {
            protected: ProtectedFiles::with_store(config.paths.protected_files_folder()),
            grants: Grants::load(Arc::clone(store)).await?,
            extensions: load_app_extensions(config, store, &trust, &shared.vault, sandbox).await?,
            recipes: Arc::new(Recipes::load(Arc::clone(store), files.clone()).await?),
            schedules: Arc::new(load_schedules(config, store).await?),
            apps: Apps::new(artifacts.clone()),
            artifacts,
            memories: Memories::new(Arc::clone(store)),
            telemetry,
            agent_catalog: Arc::new(build_agent_catalog(config, &trust, &files)),
            credentials: shared.credentials.clone(),
            files,
            trust,
        })
    }
}

async fn load_app_extensions(
    config: &Config,
    store: &Arc<dyn Store>,
    trust: &Trust,
    vault: &ServerVault,
    sandbox: Sandbox,
) -> anyhow::Result<Arc<Extensions>> {
    let pins = PinStore::load(Arc::clone(store)).await?;
    let networks = NetworkStore::load(Arc::clone(store)).await?;
    let added = extensions::ExtensionRegistry::load(Arc::clone(store), vault.clone()).await?;
    let keyring = Keyring::new(Arc::new(VaultTokenStore(vault.clone())));
    let extensions_config =
        ExtensionsConfig { keyring, ..build_extensions_config(config, (pins, networks), added, trust, sandbox) };
    Ok(Arc::new(Extensions::new(config.extensions.clone(), config.built_ins.clone(), extensions_config)))
}
