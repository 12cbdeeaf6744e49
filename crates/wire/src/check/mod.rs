//! What no protocol lets in, whatever it calls it.

mod image_size;
mod media;

use serde_json::Value;

pub(crate) use media::normalize_mime;
pub use media::{
    BadMedia, MAX_MEDIA_BYTES, MAX_PIXELS, accepts_media_family, check_media, check_media_for, is_in_media_family,
};

/// The first second of the year 1, and the last one of the year 9999.
const CALENDAR_SECONDS: std::ops::RangeInclusive<f64> = -62_135_596_800.0..=253_402_300_799.0;

/// True if a text or a name inside holds NUL, which not every store can keep.
pub fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(contains_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || contains_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// True if seconds since 1970 are a time that a calendar has.
pub fn is_calendar_time(seconds: f64) -> bool {
    CALENDAR_SECONDS.contains(&seconds)
}

/// True if a link leads to the web. Files of this machine and other schemes are no client's to name in a prompt.
pub fn is_web_link(uri: &str) -> bool {
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}
