//! `read`: lines, parts of long files, pictures, and what is no text.

use base64::Engine as _;
use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use gander_tools::Limits;
use serde_json::json;

use crate::builtin::{Bench, ToolEnv};

#[tokio::test]
async fn lines_come_with_their_numbers() {
    let bench = Bench::new();
    bench.put("a.txt", "one\n\n  three\nfour");
    bench.put("empty", "");
    assert_eq!(bench.done("read", json!({"path": "a.txt"})).await, "1\tone\n2\t\n3\t  three\n4\tfour\n");
    let part = bench.done("read", json!({"path": bench.path("a.txt"), "line": 2, "limit": 2})).await;
    assert_eq!(part, "2\t\n3\t  three\n[lines 2-3 of 4; read on with line 4]\n");
    assert_eq!(bench.done("read", json!({"path": "empty"})).await, "[the file is empty]");
    assert_eq!(
        bench.refused("read", json!({"path": "a.txt", "line": 9})).await,
        "the file has 4 lines, there is no line: 9"
    );
}

#[tokio::test]
async fn long_files_and_long_lines_are_cut_and_say_so() {
    let bench = Bench::with(Limits { lines: 3, result: 5_000, ..Limits::default() }, ToolEnv::default());
    bench.put("many", "x\n".repeat(10));
    assert_eq!(
        bench.done("read", json!({"path": "many"})).await,
        "1\tx\n2\tx\n3\tx\n[lines 1-3 of 10; read on with line 4]\n"
    );
    bench.put("wide", format!("{}\n", "é".repeat(1_500)));
    let expected = format!("1\t{}[… 1000 more bytes]\n", "é".repeat(1_000));
    assert_eq!(bench.done("read", json!({"path": "wide"})).await, expected);
    bench.put("much", "y".repeat(1_999).to_string() + "\n" + &"z\n".repeat(3_000));
    let much = bench.done("read", json!({"path": "much", "limit": 9_999})).await;
    assert!(much.len() < 5_100, "{}", much.len());
    assert!(much.contains("of 3001; read on with line"), "{much}");
}

#[tokio::test]
async fn pictures_are_shown() {
    let bench = Bench::with(Limits { image: 100, ..Limits::default() }, ToolEnv::default());
    let png = b"\x89PNG\r\n\x1a\nrest";
    bench.put("a.png", png);
    let data = base64::engine::general_purpose::STANDARD.encode(png);
    let uri = Some(bench.path("a.png").to_string_lossy().into_owned());
    let part = Part::Image { mime: "image/png".into(), data, uri };
    let expected = ToolResult { end: ToolEnd::Completed, content: vec![ToolContent::Part { part }], raw: None };
    assert_eq!(bench.call("read", json!({"path": "a.png"})).await, expected);
    bench.put("b.png", [png.as_slice(), &[0; 200]].concat());
    assert_eq!(bench.refused("read", json!({"path": "b.png"})).await, "picture is larger than 100 bytes: 212");
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    let bench = Bench::new();
    for (name, bytes) in [("zip", b"PK\x03\x04\0\0".as_slice()), ("latin", b"caf\xe9"), ("nul", b"a\0b")] {
        bench.put(name, bytes);
        assert_eq!(bench.refused("read", json!({"path": name})).await, format!("not a text file: {name}"));
    }
}
