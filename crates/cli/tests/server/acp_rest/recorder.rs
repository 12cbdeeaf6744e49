//! What the protocol consists of, and what of it goes by while the tests ask for it.

use gander_testkit::conformance::ConformanceRecorder;
use serde_json::Value;

/// Routes, as the SDKs call them.
const ROUTES: [&str; 11] = [
    "GET /ping",
    "GET /agents",
    "GET /agents/{name}",
    "POST /runs",
    "GET /runs/{id}",
    "POST /runs/{id}",
    "POST /runs/{id}/cancel",
    "GET /runs/{id}/events",
    "GET /session/{id}",
    "GET /sessions/{id}",
    "GET /resources/{id}",
];

const EVENTS: [&str; 11] = [
    "message.created",
    "message.part",
    "message.completed",
    "generic",
    "run.created",
    "run.in-progress",
    "run.awaiting",
    "run.completed",
    "run.cancelled",
    "run.failed",
    "error",
];

const STATES: [&str; 7] = ["created", "in-progress", "awaiting", "cancelling", "cancelled", "completed", "failed"];

const ERRORS: [&str; 3] = ["server_error", "invalid_input", "not_found"];

#[test]
fn what_the_protocol_consists_of() {
    let mut recorder = ConformanceRecorder::for_protocol("acp_rest");
    recorder.lists("route", ROUTES);
    recorder.lists("mode", ["sync", "async", "stream"]);
    recorder.lists("event", EVENTS);
    recorder.lists("run status", STATES);
    recorder.lists("error", ERRORS);
    recorder.lists("metadata", ["citation", "trajectory"]);
}

/// Notes what an answer shows.
pub fn heard(recorder: &mut ConformanceRecorder, method: &str, path: &str, status: u16, text: &str) {
    let path = path.split('?').next().unwrap_or_default();
    let (path, how) = path.strip_prefix("/acp-rest").map_or((path, "HTTP at the root"), |rest| (rest, "HTTP"));
    let route = ROUTES.into_iter().find(|route| fits(route, method, path));
    match (route, serde_json::from_str::<Value>(text)) {
        (Some(_), Ok(body)) if status >= 400 => {
            recorder.shows("error", body["code"].as_str().unwrap_or_default(), &status.to_string());
        }
        (Some(route), Ok(body)) => {
            recorder.shows("route", route, how);
            run(recorder, &body);
            body["events"].as_array().into_iter().flatten().for_each(|told| event(recorder, told));
        }
        (Some(route), Err(_)) if status < 400 => {
            recorder.shows("route", route, how);
            let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
            lines.filter_map(|line| serde_json::from_str(line).ok()).for_each(|told: Value| event(recorder, &told));
        }
        (Some(_) | None, _) => {}
    }
}

fn event(recorder: &mut ConformanceRecorder, event: &Value) {
    recorder.shows("event", event["type"].as_str().unwrap_or_default(), "HTTP");
    run(recorder, &event["run"]);
    if let Some(kind) = event["part"]["metadata"]["kind"].as_str() {
        recorder.shows("metadata", kind, "stream");
    }
}

fn run(recorder: &mut ConformanceRecorder, run: &Value) {
    if run.get("run_id").is_some() {
        recorder.shows("run status", run["status"].as_str().unwrap_or_default(), "HTTP");
    }
}

/// True if this is how the route is called.
fn fits(route: &str, method: &str, path: &str) -> bool {
    let Some((verb, pattern)) = route.split_once(' ') else { return false };
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    verb == method
        && loop {
            match (wanted.next(), found.next()) {
                (None, None) => break true,
                (Some(wanted), Some(found)) if wanted.starts_with('{') || wanted == found => {}
                (_, _) => break false,
            }
        }
}
