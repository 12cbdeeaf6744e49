//! How calls are checked and described before anything runs.

use std::sync::Arc;

use gander_domain::{Location, Plan, PlanItem, PlanStatus, Priority, ToolCall, ToolCallId, ToolEnd, ToolKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::builtin::{Bench, ToolEvent};

#[test]
fn every_tool_says_what_it_takes() {
    let tools = Bench::new().tools.listed_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "edit", "list", "grep", "shell", "fetch", "plan"]);
    for spec in tools.iter().map(|tool| &tool.spec) {
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        assert_eq!(spec.schema["additionalProperties"], false, "{}", spec.name);
        assert!(spec.description.ends_with('.'), "{}", spec.name);
    }
    assert!(Arc::ptr_eq(&tools, &tools.clone()));
}

/// What a schema names, the tool takes; what it does not name, the tool refuses.
#[tokio::test]
async fn schemas_and_arguments_agree() {
    let bench = Bench::new();
    let whole = [
        ("read", json!({"path": "a", "line": 1, "limit": 2})),
        ("write", json!({"path": "a", "content": "x"})),
        ("edit", json!({"path": "a", "old": "x", "new": "y", "replace_all": true})),
        ("list", json!({"path": ".", "glob": "*", "depth": 2, "hidden": true})),
        ("grep", json!({"pattern": "x", "path": ".", "glob": "*", "context": 1, "ignore_case": true, "limit": 5})),
        ("shell", json!({"command": "ls", "cwd": ".", "timeout_seconds": 5, "network": true})),
        ("fetch", json!({"url": "https://example.org"})),
        ("plan", json!({"items": [{"text": "x", "status": "pending", "priority": "high"}]})),
    ];
    let describe = |name: &str, arguments: Value| {
        bench.tools.describe_call(ToolCallId::new(Uuid::from_u128(1)), name, &arguments, &bench.context.workspace)
    };
    for ((name, arguments), spec) in whole.into_iter().zip(bench.tools.listed_tools().iter().map(|tool| &tool.spec)) {
        assert_eq!(name, spec.name);
        let named: Vec<&String> = spec.schema["properties"].as_object().unwrap().keys().collect();
        let given: Vec<&String> = arguments.as_object().unwrap().keys().collect();
        assert_eq!(given, named, "{name}");
        describe(name, arguments.clone()).unwrap();
        for required in spec.schema["required"].as_array().into_iter().flatten() {
            let mut less = arguments.clone();
            less.as_object_mut().unwrap().remove(required.as_str().unwrap());
            assert_eq!(describe(name, less).unwrap_err().end, ToolEnd::Failed, "{name} without {required}");
        }
        let mut more = arguments;
        more["surprise"] = json!(1);
        assert_eq!(describe(name, more).unwrap_err().end, ToolEnd::Failed, "{name}");
    }
}

#[tokio::test]
async fn bad_calls_are_told_to_the_model_and_never_run() {
    let bench = Bench::new();
    let cases = [
        (
            "nothing",
            json!({}),
            "no such tool: \"nothing\" (there are: read, write, edit, list, grep, shell, fetch, plan)",
        ),
        ("read", json!({}), "arguments do not fit the tool: missing field `path`"),
        (
            "read",
            json!([]),
            "arguments do not fit the tool: invalid length 0, expected struct Arguments with 3 elements",
        ),
        ("read", json!({"path": 1}), "arguments do not fit the tool: invalid type: integer `1`, expected a string"),
        ("shell", json!({"command": "  "}), "command is empty"),
        ("shell", json!({"command": "a\0b"}), "command holds a NUL character"),
        ("shell", json!({"command": "ls", "cwd": "nowhere"}), "no such file or directory: nowhere"),
        ("shell", json!({"command": "ls", "cwd": "/"}), "path is outside the workspace: /"),
        ("edit", json!({"path": "a", "old": "", "new": "x"}), "old is empty: use write to make a file"),
        ("edit", json!({"path": "a", "old": "x", "new": "x"}), "old and new are the same"),
        ("fetch", json!({"url": "nonsense"}), "not an address: relative URL without a base"),
    ];
    for (name, arguments, told) in cases {
        let refused = bench.refused(name, arguments.clone()).await;
        assert_eq!(refused.replace(&format!("{}/", bench.root().display()), ""), told, "{name} {arguments}");
    }
    let much = bench.refused("write", json!({"path": "a", "content": "x".repeat(1 << 20)})).await;
    assert_eq!(much, "arguments are longer than 524288 bytes: 1048601");
    let long = bench.refused("shell", json!({"command": "x".repeat(20_000)})).await;
    assert_eq!(long, "command is longer than 16384 bytes, write a script: 20000");
}

#[test]
fn a_call_is_described_for_people_and_policies() {
    let bench = Bench::new();
    bench.put("src/a.rs", "x");
    let id = ToolCallId::new(Uuid::from_u128(1));
    let describe = |name: &str, arguments: Value| {
        bench.tools.describe_call(id, name, &arguments, &bench.context.workspace).unwrap()
    };
    let arguments = json!({"path": "src/a.rs", "line": 5, "limit": 10});
    assert_eq!(
        describe("read", arguments.clone()),
        ToolCall {
            id,
            name: "read".into(),
            title: "Read src/a.rs, lines 5-14".into(),
            kind: ToolKind::Read,
            arguments,
            locations: vec![Location { line: Some(5), ..Location::file(bench.path("src/a.rs").to_string_lossy()) }],
            idempotent: true,
        }
    );
    let titles = [
        describe("write", json!({"path": "./src/../b", "content": ""})).title,
        describe("edit", json!({"path": bench.path("src/a.rs"), "old": "x", "new": "y"})).title,
        describe("list", json!({})).title,
        describe("list", json!({"path": "src", "glob": "*.rs"})).title,
        describe("grep", json!({"pattern": "a|b"})).title,
        describe("shell", json!({"command": "ls\nrm \u{202e}x"})).title,
        describe("fetch", json!({"url": "https://example.org/a"})).title,
        describe("plan", json!({"items": []})).title,
    ];
    assert_eq!(
        titles,
        [
            "Write b",
            "Edit src/a.rs",
            "List .",
            "List *.rs in src",
            "Search . for a|b",
            "ls␊rm ⟨U+202E⟩x",
            "Fetch https://example.org/a",
            "Plan 0 steps"
        ]
    );
}

#[tokio::test]
async fn a_plan_is_handed_on() {
    let mut bench = Bench::new();
    let items =
        json!([{"text": "a", "status": "completed"}, {"text": "b", "status": "in_progress", "priority": "high"}]);
    assert_eq!(bench.done("plan", json!({"items": items})).await, "plan set: 1 of 2 steps completed");
    let item = |text: &str, priority, status| PlanItem { text: text.into(), priority, status };
    let plan = Plan {
        items: vec![
            item("a", Priority::Medium, PlanStatus::Completed),
            item("b", Priority::High, PlanStatus::InProgress),
        ],
    };
    assert_eq!(bench.signals.recv().await, Some(ToolEvent::Plan(plan)));
}
