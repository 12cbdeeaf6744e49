//! `write` and `edit`: exact replacements, diffs, and errors that help.

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use serde_json::json;

use crate::builtin::Bench;

fn changed(bench: &Bench, name: &str, told: &str, old: Option<&str>, new: &str) -> ToolResult {
    let path = bench.path(name).to_string_lossy().into_owned();
    let diff = ToolContent::Diff { path, old: old.map(str::to_owned), new: new.to_owned() };
    ToolResult { end: ToolEnd::Completed, content: vec![ToolContent::Part { part: Part::text(told) }, diff], raw: None }
}

#[tokio::test]
async fn writing_shows_the_change() {
    let bench = Bench::new();
    let made = bench.call("write", json!({"path": "src/a.rs", "content": "one\ntwo\n"})).await;
    assert_eq!(made, changed(&bench, "src/a.rs", "created src/a.rs: 2 lines", None, "one\ntwo\n"));
    let replaced = bench.call("write", json!({"path": "src/a.rs", "content": "one\n2\n3\n"})).await;
    assert_eq!(
        replaced,
        changed(&bench, "src/a.rs", "changed src/a.rs: +2 -1 lines", Some("one\ntwo\n"), "one\n2\n3\n")
    );
    assert_eq!(bench.get("src/a.rs"), "one\n2\n3\n");
}

#[tokio::test]
async fn editing_replaces_exactly_one_piece() {
    let bench = Bench::new();
    bench.put("a", "let x = 1;\nlet y = 1;\n");
    let edited = bench.call("edit", json!({"path": "a", "old": "y = 1", "new": "y = 2"})).await;
    let (old, new) = ("let x = 1;\nlet y = 1;\n", "let x = 1;\nlet y = 2;\n");
    assert_eq!(edited, changed(&bench, "a", "changed a: +1 -1 lines", Some(old), new));
    assert_eq!(bench.get("a"), new);
}

#[tokio::test]
async fn several_places_need_a_word() {
    let bench = Bench::new();
    bench.put("a", "x\ny\nx\nx\n");
    let told = bench.refused("edit", json!({"path": "a", "old": "x", "new": "z"})).await;
    assert_eq!(told, "old occurs 3 times (lines 1, 3, 4): take in more of its surroundings, or set replace_all");
    bench.done("edit", json!({"path": "a", "old": "x", "new": "z", "replace_all": true})).await;
    assert_eq!(bench.get("a"), "z\ny\nz\nz\n");
}

#[tokio::test]
async fn a_miss_comes_with_a_hint() {
    let bench = Bench::new();
    bench.put("a", "fn main() {\n    println!(\"hello\");\n}\n");
    let cases = [
        ("  println!(\"helo\");", "old does not occur; the most similar text is at line 2:\n    println!(\"hello\");"),
        ("2\t    println!(\"hello\");", "old does not occur: leave out the line numbers that read shows"),
        ("SELECT * FROM birds", "old does not occur, nor anything similar: read the file again"),
        (
            "\nfn main(args) {\n    x",
            "old does not occur; the most similar text is at line 1:\nfn main() {\n    println!(\"hello\");\n}",
        ),
    ];
    for (old, told) in cases {
        assert_eq!(bench.refused("edit", json!({"path": "a", "old": old, "new": "x"})).await, told);
    }
    let missing = bench.refused("edit", json!({"path": "b", "old": "x", "new": "y"})).await;
    assert_eq!(missing, "no such file: b");
}

#[tokio::test]
async fn line_ends_of_windows_stay() {
    let bench = Bench::new();
    bench.put("a", "one\r\ntwo\r\nthree\r\n");
    bench.done("edit", json!({"path": "a", "old": "one\ntwo", "new": "1\n2"})).await;
    assert_eq!(bench.get("a"), "1\r\n2\r\nthree\r\n");
}

#[tokio::test]
async fn long_files_show_only_what_changed() {
    let bench = Bench::new();
    let lines: Vec<String> = (1..=20_000).map(|line| format!("line {line}\n")).collect();
    bench.put("a", lines.concat());
    let edited = bench.call("edit", json!({"path": "a", "old": "line 10000\n", "new": "LINE\n"})).await;
    let around =
        |middle: &str| format!("line 9997\nline 9998\nline 9999\n{middle}\nline 10001\nline 10002\nline 10003\n");
    assert_eq!(edited, changed(&bench, "a", "changed a: +1 -1 lines", Some(&around("line 10000")), &around("LINE")));
}

#[tokio::test]
async fn a_hidden_secret_is_not_written_over() {
    let bench = Bench::new();
    bench.put("settings", "key=sk-abcdefghijklmnopqrstuvwx\nother=1\n");
    assert_eq!(bench.done("read", json!({"path": "settings"})).await, "1\tkey=[redacted]\n2\tother=1\n");
    let told = bench.refused("write", json!({"path": "settings", "content": "key=[redacted]\nother=2\n"})).await;
    assert!(told.starts_with("the new text holds [redacted]"), "{told}");
    bench.done("edit", json!({"path": "settings", "old": "other=1", "new": "other=2"})).await;
    assert_eq!(bench.get("settings"), "key=sk-abcdefghijklmnopqrstuvwx\nother=2\n");
}
