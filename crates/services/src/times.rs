//! Times as text.

use gander_domain::Timestamp;

/// A time to the second in UTC, such as `2026-01-31T08:00:00Z`.
pub fn format_rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).map(|at| at.strftime("%FT%TZ").to_string()).unwrap_or_default()
}
