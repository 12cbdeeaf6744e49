//! The parameters of goose's extension methods, and methods that there are not.

use gander_domain::ServiceError;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) fn unknown_goose_method(name: &str) -> ServiceError {
    ServiceError::UnknownMethod(format!("_goose/unstable/{name}"))
}

/// An id that we cannot have made is the id of no session.
pub(super) fn read_goose_method_params<T: DeserializeOwned>(params: Value) -> Result<T, ServiceError> {
    serde_json::from_value(params).map_err(|error| ServiceError::BadParams(error.to_string()))
}
