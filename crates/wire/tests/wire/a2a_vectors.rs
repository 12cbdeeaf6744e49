//! Rosetta vectors for A2A: what a subscriber of each run is told, and what the run's task is in the end.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gander_domain::{Entry, Event, RunId, Seq};
use gander_testkit::skip::skipped;
use gander_testkit::vectors::{Scenario, scenarios};
use gander_wire::a2a::json::{self, JsonEventFrame};
use gander_wire::a2a::{A2aDialect, A2aProjection, A2aTask, DetailLevel, TaskOpening, TaskSubject, TaskUpdate};
use serde_json::{Value, json};

fn all() -> Vec<Scenario> {
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap()
}

fn runs(log: &[Entry]) -> Vec<RunId> {
    let mut runs: Vec<RunId> = Vec::new();
    for run in log.iter().filter_map(|entry| entry.run) {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs
}

fn watch(run: RunId, detail: DetailLevel) -> A2aProjection {
    A2aProjection::new(
        TaskSubject {
            task: run,
            context: "ctx".to_owned(),
            artifacts_url: Some("https://here/a2a/.artifacts/1".to_owned()),
        },
        detail,
        TaskOpening::AtOnce,
    )
}

/// Every event of every run, as a stream's lines.
fn told(log: &[Entry], dialect: A2aDialect, detail: DetailLevel) -> Vec<String> {
    let mut lines = Vec::new();
    for run in runs(log) {
        let mut watch = watch(run, detail);
        let frame = match dialect {
            A2aDialect::V1 | A2aDialect::V03Rest => JsonEventFrame::unwrapped(dialect, watch.subject()),
            A2aDialect::V03 => JsonEventFrame::json_rpc_response(dialect, watch.subject(), &json!(7)),
        };
        for update in log.iter().flat_map(|entry| watch.project_entry(entry)) {
            let mut line = Vec::new();
            if frame.write_update(&update, &mut line) {
                lines.push(String::from_utf8(line).unwrap());
            }
        }
    }
    lines
}

fn tasks(log: &[Entry], detail: DetailLevel) -> Vec<A2aTask> {
    let of = |run| {
        let (mut watch, mut task) = (watch(run, detail), None);
        log.iter()
            .flat_map(|entry| watch.project_entry(entry))
            .for_each(|update| A2aTask::apply_update(&mut task, update));
        task
    };
    runs(log).into_iter().filter_map(of).collect()
}

#[test]
fn every_scenario_is_told_as_expected() {
    for scenario in all() {
        let log = &scenario.log;
        scenario.check("a2a.jsonl", &told(log, A2aDialect::V1, DetailLevel::Plain)).unwrap();
        scenario.check("a2a_full.jsonl", &told(log, A2aDialect::V1, DetailLevel::Full)).unwrap();
        scenario.check("a2a_v03.jsonl", &told(log, A2aDialect::V03, DetailLevel::Plain)).unwrap();
        scenario.check("a2a_v03_rest.jsonl", &told(log, A2aDialect::V03Rest, DetailLevel::Plain)).unwrap();
        let lines: Vec<String> = tasks(log, DetailLevel::Plain)
            .iter()
            .map(|task| json::a2a_task_json(A2aDialect::V1, task).to_string())
            .collect();
        scenario.check("a2a_task.jsonl", &lines).unwrap();
    }
}

/// The lines written by hand are those that the types would have written.
#[test]
fn growing_text_is_written_as_any_other_update() {
    let mut checked = 0;
    for scenario in all() {
        for line in told(&scenario.log, A2aDialect::V1, DetailLevel::Plain) {
            let value: Value = serde_json::from_str(&line).unwrap();
            let Some(update) = value.get("artifactUpdate") else { continue };
            assert!(update["taskId"].is_string() && update["contextId"] == "ctx", "{line}");
            assert!(update["artifact"]["artifactId"].is_string() && update["artifact"]["parts"].is_array(), "{line}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Law 7: joined deltas make the same task, and so does any place from which a reader goes on.
#[test]
fn a_task_is_the_same_from_joined_deltas() {
    for scenario in all() {
        let joined = join(&scenario.log);
        for detail in [DetailLevel::Plain, DetailLevel::Full] {
            assert_eq!(tasks(&joined, detail), tasks(&scenario.log, detail), "{}", scenario.name);
        }
    }
}

/// A subscriber who comes later gets the task as it is, then what follows, and ends with the same.
#[test]
fn whoever_comes_at_any_place_ends_with_the_same_task() {
    for scenario in all() {
        let log = &scenario.log;
        for (run, whole) in runs(log).into_iter().zip(tasks(log, DetailLevel::Full)) {
            for cut in 0..log.len() {
                let (mut watch, mut task) = (watch(run, DetailLevel::Full), None);
                log[..cut]
                    .iter()
                    .flat_map(|entry| watch.project_entry(entry))
                    .for_each(|update| A2aTask::apply_update(&mut task, update));
                if let Some(so_far) = task.take() {
                    A2aTask::apply_update(&mut task, TaskUpdate::Begin(Box::new(so_far)));
                }
                log[cut..]
                    .iter()
                    .flat_map(|entry| watch.project_entry(entry))
                    .for_each(|update| A2aTask::apply_update(&mut task, update));
                assert_eq!(task.as_ref(), Some(&whole), "{} at {cut}", scenario.name);
            }
        }
    }
}

/// Set `GANDER_A2A_SCHEMA` to the official JSON schema of 1.0.
#[test]
fn every_line_validates_against_the_official_schema() {
    let Some(path) = std::env::var_os("GANDER_A2A_SCHEMA") else {
        return skipped(
            "a2a_vectors::every_line_validates_against_the_official_schema",
            "GANDER_A2A_SCHEMA is not set",
        );
    };
    let mut text = std::fs::read_to_string(path).unwrap();
    let names: Value = serde_json::from_str(&text).unwrap();
    for title in names["definitions"].as_object().unwrap().keys() {
        let name = title.replace(' ', "");
        for package in ["lf.a2a.v1", "google.protobuf"] {
            text = text.replace(&format!("\"{package}.{name}.jsonschema.json"), &format!("\"#/definitions/{title}"));
        }
    }
    let schema: Value = serde_json::from_str(&text).unwrap();
    let of = |title: &str| {
        let mut whole = schema.clone();
        whole["$ref"] = json!(format!("#/definitions/{title}"));
        jsonschema::validator_for(&whole).unwrap()
    };
    let (event, task) = (of("Stream Response"), of("Task"));
    for scenario in all() {
        for line in told(&scenario.log, A2aDialect::V1, DetailLevel::Full) {
            let value = serde_json::from_str(&line).unwrap();
            assert!(event.is_valid(&value), "{}: {line}: {:?}", scenario.name, event.validate(&value).err());
        }
        for made in tasks(&scenario.log, DetailLevel::Full) {
            let value = json::a2a_task_json(A2aDialect::V1, &made);
            assert!(task.is_valid(&value), "{}: {value}", scenario.name);
        }
    }
}

fn join(log: &[Entry]) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::new();
    for entry in log {
        if let (
            Some(Event::PartDelta { message: a, part: b, text: whole, .. }),
            Event::PartDelta { message, part, text, .. },
        ) = (joined.last_mut().map(|last| &mut last.event), &entry.event)
            && (&*a, &*b) == (message, part)
        {
            whole.push_str(text);
            continue;
        }
        joined.push(entry.clone());
    }
    assert!(joined.last().is_some_and(|last| last.seq > Seq::ZERO));
    joined
}
