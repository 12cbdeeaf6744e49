//! What the decoders of all wires share: the trait, and the errors and payloads that they make.

use gander_domain::ProviderPayload;
use serde_json::{Value, json};

use super::{ModelError, ModelEvent, ModelInfo};

/// Understands the events of one wire.
pub trait Codec: Send {
    /// Takes the data of one event.
    fn decode_event(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// The stream ended without [`ModelEvent::Done`]: it is whole after all, or an error.
    fn finish_stream(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
}

/// The native form of an answer, marked with who alone understands it.
pub(super) fn codec_native_payload(wire: &str, info: &ModelInfo, items: Vec<Value>) -> ProviderPayload {
    ProviderPayload {
        wire: wire.into(),
        items: json!({ "provider": info.provider, "model": info.model, "items": items }),
    }
}

/// The stream ended in the middle.
pub(super) fn codec_cut_off_error(info: &ModelInfo) -> ModelError {
    ModelError::Network(format!("the answer was cut off before its end, provider: {}", info.provider))
}

/// An event is not what the wire prescribes.
pub(super) fn codec_bad_event_error(info: &ModelInfo, error: &serde_json::Error, data: &[u8]) -> ModelError {
    let start = String::from_utf8_lossy(&data[..data.len().min(200)]).into_owned();
    ModelError::BadStream(format!("{} sent an event that cannot be read ({error}): {start}", info.provider))
}

/// A tool's arguments as JSON, or why not.
pub(super) fn parse_codec_arguments(info: &ModelInfo, name: &str, text: &str) -> Result<Value, ModelError> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | Err(_) => {
            let start: String = text.chars().take(200).collect();
            let model = info.qualified_name();
            Err(ModelError::BadArguments(format!(
                "{model} called {name} with arguments that are not a JSON object: {start}"
            )))
        }
    }
}
