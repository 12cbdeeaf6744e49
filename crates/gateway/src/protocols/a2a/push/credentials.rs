//! What receivers of push notifications are proven with: in the vault, never in a log.

use std::io;

use gander_domain::RunId;
use gander_services::vault::Vault;
use gander_wire::a2a::PushConfig;
use serde::{Deserialize, Serialize};

/// The secrets of one receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Credentials {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// True if the config holds a secret.
pub(super) fn has_secrets(config: &PushConfig) -> bool {
    taken(&mut config.clone()) != Credentials::default()
}

/// The config as a log may hold it.
pub(super) fn without_secrets(config: &PushConfig) -> PushConfig {
    let mut config = config.clone();
    taken(&mut config);
    config
}

/// Keeps the secrets of a receiver, in place of those that it had.
pub(super) fn keep(vault: &Vault, run: RunId, config: &PushConfig) -> io::Result<()> {
    match taken(&mut config.clone()) {
        none if none == Credentials::default() => forget(vault, run, &config.id),
        secrets => vault.put(&name(run, &config.id), &secrets),
    }
}

/// The config with its secrets.
pub(super) fn restored(vault: &Vault, run: RunId, mut config: PushConfig) -> PushConfig {
    let kept: Credentials = vault.get(&name(run, &config.id)).unwrap_or_default();
    config.token = config.token.or(kept.token);
    if let Some(authentication) = &mut config.authentication {
        authentication.credentials = authentication.credentials.take().or(kept.credentials);
    }
    config
}

/// Nothing more is sent there.
pub(super) fn forget(vault: &Vault, run: RunId, id: &str) -> io::Result<()> {
    vault.remove(&name(run, id))
}

fn taken(config: &mut PushConfig) -> Credentials {
    let credentials = config.authentication.as_mut().and_then(|authentication| authentication.credentials.take());
    Credentials { token: config.token.take(), credentials }
}

fn name(run: RunId, id: &str) -> String {
    format!("a2a/push/{run}/{id}")
}
