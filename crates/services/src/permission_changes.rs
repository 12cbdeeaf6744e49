//! What changes what is allowed: grants, trusted folders, saved policies and the server itself. Who may is decided here.

use std::path::{Path, PathBuf};

use gander_domain::caller::Caller;
use gander_domain::{Policy, ServiceError, Settings};
use serde_json::Value;

use crate::errors::{service_error_from_denied, service_error_from_store};
use crate::trust::TrustError;
use crate::{Control, Services};

/// Takes one of the caller's grants back.
pub async fn change_revoke_grant(services: &Services, caller: &Caller, id: u64) -> Result<(), ServiceError> {
    caller.may_grant().map_err(service_error_from_denied)?;
    match services.grants.revoke(&caller.principal, id).await.map_err(|error| service_error_from_store(&error))? {
        true => Ok(()),
        false => Err(ServiceError::BadParams(format!("no such grant: {id}"))),
    }
}

/// Lets the settings of a folder count; gives the folder as it is really called.
pub async fn trust_folder(services: &Services, caller: &Caller, folder: &Path) -> Result<PathBuf, ServiceError> {
    caller.may_trust().map_err(service_error_from_denied)?;
    match services.trust.trust(folder).await {
        Ok(folder) => Ok(folder),
        Err(TrustError::Store(error)) => Err(service_error_from_store(&error)),
        Err(error @ TrustError::NoFolder { .. }) => Err(ServiceError::BadParams(error.to_string())),
    }
}

/// Lets the settings of a folder count no longer.
pub async fn distrust_folder(services: &Services, caller: &Caller, folder: &Path) -> Result<(), ServiceError> {
    caller.may_trust().map_err(service_error_from_denied)?;
    match services.trust.revoke(folder).await.map_err(|error| service_error_from_store(&error))? {
        true => Ok(()),
        false => Err(ServiceError::BadParams(format!("not trusted: {}", folder.display()))),
    }
}

/// Tells the server itself what to do.
pub async fn change_control_server(
    services: &Services,
    caller: &Caller,
    control: Control,
) -> Result<Value, ServiceError> {
    caller.may_change_server_settings().map_err(service_error_from_denied)?;
    (services.control)(control).await.map_err(ServiceError::Unavailable)
}

/// Whether the caller may save this policy for its sessions to come.
pub fn check_saved_policy(services: &Services, caller: &Caller, policy: Policy) -> Result<(), ServiceError> {
    caller.may_loosen_policy(services.default_session_settings().policy, policy).map_err(service_error_from_denied)
}

/// Sets a new session of a caller that saved this policy or was started with it. Without the scope it tightens, never
/// loosens.
pub fn choose_policy(services: &Services, caller: &Caller, settings: &mut Settings, wanted: Policy) {
    settings.policy = caller.allowed_policy(services.default_session_settings().policy, wanted);
    settings.policy_chosen = settings.policy == wanted;
}

/// Facts about the whole server, for those who may see what others do.
pub fn permitted_server_facts(services: &Services, caller: &Caller) -> Option<Value> {
    caller.may_see_server().then(|| (services.status)())
}
