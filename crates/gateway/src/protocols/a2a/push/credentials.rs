//! What receivers of push notifications are proven with: in the vault, never in a log.

use std::io;

use gander_domain::RunId;
use gander_services::server_vault::ServerVault;
use gander_wire::a2a::PushConfig;
use serde::{Deserialize, Serialize};

/// The secrets of one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PushCredentials {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// True if the config holds a secret.
pub(super) fn has_push_credentials(config: &PushConfig) -> bool {
    take_push_credentials(&mut config.clone()) != PushCredentials::default()
}

/// The config as a log may hold it.
pub(super) fn without_push_credentials(config: &PushConfig) -> PushConfig {
    let mut config = config.clone();
    take_push_credentials(&mut config);
    config
}

/// Keeps the secrets of a receiver, in place of those that it had.
pub(super) async fn store_push_credentials(vault: &ServerVault, run: RunId, config: &PushConfig) -> io::Result<()> {
    match take_push_credentials(&mut config.clone()) {
        none if none == PushCredentials::default() => delete_push_credentials(vault, run, &config.id).await,
        secrets => vault.put(&push_credentials_vault_key(run, &config.id), &secrets).await,
    }
}

/// The config with its secrets.
pub(super) fn with_push_credentials(vault: &ServerVault, run: RunId, mut config: PushConfig) -> PushConfig {
    let kept: PushCredentials = vault.get(&push_credentials_vault_key(run, &config.id)).unwrap_or_default();
    config.token = config.token.or(kept.token);
    if let Some(authentication) = &mut config.authentication {
        authentication.credentials = authentication.credentials.take().or(kept.credentials);
    }
    config
}

/// Nothing more is sent there.
pub(super) async fn delete_push_credentials(vault: &ServerVault, run: RunId, id: &str) -> io::Result<()> {
    vault.remove(&push_credentials_vault_key(run, id)).await
}

fn take_push_credentials(config: &mut PushConfig) -> PushCredentials {
    let credentials = config.authentication.as_mut().and_then(|authentication| authentication.credentials.take());
    PushCredentials { token: config.token.take(), credentials }
}

fn push_credentials_vault_key(run: RunId, id: &str) -> String {
    format!("a2a/push/{run}/{id}")
}
