//! What a client takes, as its `Accept` headers say.

use http::header::{self, HeaderMap};

/// What an event stream is sent as, and what stands for it.
const EVENT_STREAM: [&str; 3] = ["text/event-stream", "text/*", "*/*"];

/// True if a stream of events may be sent. A client that says nothing takes everything.
pub fn accepts_event_stream(headers: &HeaderMap) -> bool {
    accepts_any_of(headers, &EVENT_STREAM)
}

/// True if one of these media ranges is accepted. A client that says nothing takes everything.
pub fn accepts_any_of(headers: &HeaderMap, ranges: &[&str]) -> bool {
    !headers.contains_key(header::ACCEPT) || accepted_types(headers).any(|kind| is_one_of_media_ranges(ranges, kind))
}

/// True if a client names event streams themselves, and not only everything.
pub fn names_event_stream(headers: &HeaderMap) -> bool {
    accepted_types(headers).any(|kind| is_one_of_media_ranges(&EVENT_STREAM[..1], kind))
}

/// The media ranges of all `Accept` headers, without their parameters.
fn accepted_types(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or_default().trim())
}

fn is_one_of_media_ranges(ranges: &[&str], kind: &str) -> bool {
    ranges.iter().any(|range| kind.eq_ignore_ascii_case(range))
}
