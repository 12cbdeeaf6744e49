//! `list` and `grep`: what is found, in which order, and what is left out.

use gander_tools::Limits;
use serde_json::json;

use crate::builtin::{Bench, ToolEnv, link};

fn project() -> Bench {
    let bench = Bench::new();
    bench.put(".gitignore", "target/\n*.log\n!keep.log\n/only-here\n");
    bench.put(".git/config", "needle");
    bench.put(".hidden", "needle");
    bench.put("Cargo.toml", "[package]\n");
    bench.put("src/main.rs", "fn main() {\n    // needle\n}\n");
    bench.put("src/deep/lib.rs", "one\ntwo\nneedle three\nfour\nNeedle five\nsix\n");
    bench.put("src/deep/.gitignore", "local.txt\n");
    bench.put("src/deep/local.txt", "needle");
    bench.put("src/only-here/x", "needle");
    bench.put("only-here/x", "needle");
    bench.put("target/out.rs", "needle");
    bench.put("a.log", "needle");
    bench.put("keep.log", "needle");
    bench.put("binary", b"needle\0");
    bench.put("key.pem", "needle");
    link("src", bench.path("link"));
    bench
}

#[tokio::test]
async fn folders_are_listed_without_what_git_ignores() {
    let bench = project();
    assert_eq!(bench.done("list", json!({})).await, "Cargo.toml\nbinary\nkeep.log\nkey.pem\nlink@\nsrc/");
    assert_eq!(
        bench.done("list", json!({"path": "src", "depth": 2})).await,
        "src/deep/\nsrc/deep/lib.rs\nsrc/main.rs\nsrc/only-here/\nsrc/only-here/x"
    );
    assert_eq!(
        bench.done("list", json!({"hidden": true})).await,
        ".gitignore\n.hidden\nCargo.toml\nbinary\nkeep.log\nkey.pem\nlink@\nsrc/"
    );
    assert_eq!(bench.done("list", json!({"path": "target"})).await, "target/out.rs");
    assert_eq!(
        bench.refused("list", json!({"path": "Cargo.toml"})).await,
        format!("not a directory: {}", bench.path("Cargo.toml").display())
    );
}

#[tokio::test]
async fn patterns_find_files_on_all_levels() {
    let bench = project();
    assert_eq!(bench.done("list", json!({"glob": "**/*.rs"})).await, "src/deep/lib.rs\nsrc/main.rs");
    assert_eq!(bench.done("list", json!({"glob": "*.rs", "path": "src"})).await, "src/main.rs");
    assert_eq!(bench.done("list", json!({"glob": "*.zig"})).await, "[nothing found]");
    assert_eq!(bench.refused("list", json!({"glob": "a{"})).await.split(':').next(), Some("glob is not valid"));
}

#[tokio::test]
async fn long_lists_are_cut_and_say_so() {
    let bench = Bench::with(Limits { entries: 2, ..Limits::default() }, ToolEnv::default());
    for name in ["a", "b", "c"] {
        bench.put(name, "");
    }
    assert_eq!(bench.done("list", json!({})).await, "a\nb\n[only the first 2 are shown: ask for less]");
    bench.put("a", "");
    std::fs::remove_file(bench.path("c")).unwrap();
    assert_eq!(bench.done("list", json!({})).await, "a\nb");
}

#[tokio::test]
async fn lines_are_found() {
    let bench = project();
    let found =
        "keep.log:1:needle\nsrc/deep/lib.rs:3:needle three\nsrc/main.rs:2:    // needle\nsrc/only-here/x:1:needle\n";
    assert_eq!(bench.done("grep", json!({"pattern": "needle"})).await, found);
    assert_eq!(
        bench.done("grep", json!({"pattern": "^NEEDLE", "ignore_case": true, "glob": "*.rs"})).await,
        "src/deep/lib.rs:3:needle three\nsrc/deep/lib.rs:5:Needle five\n"
    );
    assert_eq!(
        bench.done("grep", json!({"pattern": "needle", "glob": "src/*.rs"})).await,
        "src/main.rs:2:    // needle\n"
    );
    assert_eq!(
        bench.done("grep", json!({"pattern": "needle", "path": "src/main.rs"})).await,
        "src/main.rs:2:    // needle\n"
    );
    assert_eq!(bench.done("grep", json!({"pattern": "haystack"})).await, "[nothing found]\n");
    assert_eq!(bench.refused("grep", json!({"pattern": "("})).await.split(':').next(), Some("pattern is not valid"));
}

#[tokio::test]
async fn lines_around_are_shown_once() {
    let bench = project();
    let around = |context, pattern| json!({"pattern": pattern, "path": "src/deep/lib.rs", "context": context});
    let joined = "src/deep/lib.rs-2-two\nsrc/deep/lib.rs:3:needle three\nsrc/deep/lib.rs-4-four\nsrc/deep/lib.rs:5:Needle five\nsrc/deep/lib.rs-6-six\n";
    assert_eq!(bench.done("grep", around(1, "(?i)needle")).await, joined);
    let apart =
        "src/deep/lib.rs:1:one\nsrc/deep/lib.rs-2-two\n--\nsrc/deep/lib.rs-5-Needle five\nsrc/deep/lib.rs:6:six\n";
    assert_eq!(bench.done("grep", around(1, "one|six")).await, apart);
}

#[tokio::test]
async fn long_searches_are_cut_and_say_so() {
    let bench = Bench::new();
    bench.put("a", "x\n".repeat(5_000));
    let found = bench.done("grep", json!({"pattern": "x", "limit": 2})).await;
    assert_eq!(found, "a:1:x\na:2:x\n[stopped after 2 lines: narrow the search]\n");
    assert_eq!(bench.done("grep", json!({"pattern": "x"})).await.lines().count(), 201);
}
