//! Nothing outside the workspace is read or written, whatever a path says and whatever changes meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use gander_domain::ToolEnd;
use rustix::fs::{CWD, RenameFlags};
use serde_json::json;

use crate::builtin::{Bench, link, text};

/// Names that look odd and mean a file inside, which is not there.
const ODD: [&str; 10] = [
    "~/.ssh/id_rsa",
    "~root/.profile",
    "file:///etc/passwd",
    "..\\secret.txt",
    "%2e%2e/secret.txt",
    "..%2fsecret.txt",
    "\u{2025}/secret.txt",
    "..\u{2215}secret.txt",
    "．．/secret.txt",
    "nosuch",
];

/// Names that lead out, or nowhere, or to something that is no file.
const HOSTILE: [&str; 58] = [
    "../secret.txt",
    "../../secret.txt",
    "./../secret.txt",
    "a/../../secret.txt",
    "sub/../../secret.txt",
    "sub/./../../secret.txt",
    ".././secret.txt",
    "..//secret.txt",
    "sub/../sub/../../secret.txt",
    "/etc/passwd",
    "/etc/shadow",
    "//etc/passwd",
    "/../etc/passwd",
    "/./etc/passwd",
    "/etc/../etc/passwd",
    "../../../../../../../../etc/passwd",
    "/proc/self/environ",
    "/proc/self/mem",
    "/proc/self/maps",
    "/proc/self/cwd/../secret.txt",
    "/proc/self/root/etc/passwd",
    "/proc/1/environ",
    "/proc/version",
    "/proc/self/fd/0",
    "/dev/zero",
    "/dev/null",
    "/dev/random",
    "/dev/stdin",
    "/dev/tty",
    "/dev/fd/0",
    "/sys/kernel/version",
    "..",
    "../",
    "/",
    "/root/.ssh/id_rsa",
    "out",
    "out/x",
    "up/secret.txt",
    "deep/up/secret.txt",
    "chain",
    "loop",
    "passwd",
    "relative",
    "procs/self/environ",
    "fifo",
    "socket",
    "sub",
    ".",
    "",
    "sub/",
    "sub/..",
    "dangling",
    "sub/missing/../../../secret.txt",
    "missing/../../secret.txt",
    "a\0b",
    "\0",
    "../secret.txt\0.png",
    "sub\n/../../secret.txt",
];

/// The same, and those that depend on where the workspace is.
fn hostile(bench: &Bench) -> Vec<String> {
    let outside = bench.folder.path().display().to_string();
    let root = bench.root().display().to_string();
    let mut names: Vec<String> = HOSTILE.into_iter().chain(ODD).map(str::to_owned).collect();
    names.extend([
        format!("{outside}/secret.txt"),
        format!("{root}/../secret.txt"),
        format!("{root}x/secret.txt"),
        format!("{root}/sub/../../secret.txt"),
        format!("/proc/self/root{outside}/secret.txt"),
        "a/".repeat(3_000),
        "x".repeat(300),
        "../".repeat(500) + "etc/passwd",
    ]);
    names
}

fn prepared() -> Bench {
    let bench = Bench::new();
    let outside = bench.folder.path();
    bench.put("sub/inner.txt", "inside");
    bench.put("deep/inner.txt", "inside");
    link(outside.join("secret.txt"), bench.path("out"));
    link(outside, bench.path("up"));
    link("../..", bench.path("deep/up"));
    link("out", bench.path("chain"));
    link("loop", bench.path("loop"));
    link("/etc/passwd", bench.path("passwd"));
    link("../secret.txt", bench.path("relative"));
    link("/proc", bench.path("procs"));
    link("nowhere", bench.path("dangling"));
    let made = std::process::Command::new("mkfifo").arg(bench.path("fifo")).status().unwrap();
    assert!(made.success());
    std::mem::forget(std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap());
    bench
}

#[tokio::test]
async fn no_hostile_name_is_read() {
    let bench = prepared();
    let names = hostile(&bench);
    assert!(names.len() >= 60, "{}", names.len());
    for name in names {
        // A pipe that nobody writes to would hold this up for ever.
        let result = bench.call("read", json!({"path": name})).await;
        assert_eq!(result.end, ToolEnd::Failed, "{name:?}");
        assert!(!text(&result).contains("OUTSIDE"), "{name:?}");
    }
}

#[tokio::test]
async fn no_hostile_name_is_written() {
    let bench = prepared();
    for name in hostile(&bench).iter().filter(|name| !ODD.contains(&name.as_str())) {
        let result = bench.call("write", json!({"path": name, "content": "WRITTEN"})).await;
        assert_eq!(result.end, ToolEnd::Failed, "{name:?}");
    }
    // These are new files inside, however odd their names look.
    for name in ODD {
        assert_eq!(
            bench.call("write", json!({"path": name, "content": "WRITTEN"})).await.end,
            ToolEnd::Completed,
            "{name:?}"
        );
        assert!(bench.path(name.trim_start_matches('/')).symlink_metadata().unwrap().is_file(), "{name:?}");
    }
    assert_eq!(fs::read_to_string(bench.folder.path().join("secret.txt")).unwrap(), "OUTSIDE");
    let mut beside: Vec<String> = fs::read_dir(bench.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    beside.sort();
    assert_eq!(beside, ["secret.txt", "work"]);
}

#[tokio::test]
async fn hostile_names_are_neither_listed_nor_searched() {
    let bench = prepared();
    for name in hostile(&bench) {
        for (tool, arguments) in
            [("list", json!({"path": name, "hidden": true})), ("grep", json!({"path": name, "pattern": "."}))]
        {
            let result = text(&bench.call(tool, arguments).await);
            assert!(
                !result.contains("OUTSIDE") && !result.contains("root:") && !result.contains("passwd-"),
                "{tool} {name:?}: {result}"
            );
        }
    }
    let everything = bench.done("grep", json!({"pattern": "."})).await;
    assert_eq!(everything, "deep/inner.txt:1:inside\nsub/inner.txt:1:inside\n");
}

#[tokio::test]
async fn links_inside_are_followed_inside() {
    let bench = Bench::new();
    bench.put("real/a.txt", "inside");
    link("real", bench.path("relative"));
    link(bench.path("real"), bench.path("absolute"));
    for name in ["relative/a.txt", "absolute/a.txt", "relative/../real/a.txt"] {
        assert_eq!(bench.done("read", json!({"path": name})).await, "1\tinside\n", "{name}");
    }
    bench.done("write", json!({"path": "relative/a.txt", "content": "changed"})).await;
    assert_eq!(bench.get("real/a.txt"), "changed");
    assert!(fs::symlink_metadata(bench.path("relative")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_huge_sparse_file_is_refused_unread() {
    let bench = Bench::new();
    fs::File::create(bench.path("sparse")).unwrap().set_len(10 << 30).unwrap();
    let told = bench.refused("read", json!({"path": "sparse"})).await;
    assert_eq!(told, format!("file is larger than 16777216 bytes: {}", bench.path("sparse").display()));
    assert_eq!(
        bench.done("grep", json!({"pattern": "x"})).await,
        "[nothing found]\n[1 files were too large to search]\n"
    );
}

#[tokio::test]
async fn a_further_folder_of_the_session_is_inside_too() {
    let bench = Bench::new();
    let extra = tempfile::tempdir().unwrap();
    fs::write(extra.path().join("x"), "extra").unwrap();
    let workspace = gander_tools::FileAccess::default().open(&bench.root(), &[extra.path().to_owned()]).unwrap();
    let located = workspace.locate_path(extra.path().join("x").to_str().unwrap()).unwrap();
    assert_eq!(located.absolute_path(), extra.path().canonicalize().unwrap().join("x"));
    assert_eq!(workspace.rule_folders().extra, [extra.path().canonicalize().unwrap()]);
}

/// A folder and a file that turn into links to the outside and back while tools are at work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_links_opens_nothing() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "OUTSIDE").unwrap();
    bench.put("real/a.txt", "inside");
    link(&outside, bench.path("twin"));
    let (real, twin) = (bench.path("real"), bench.path("twin"));
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0;
        while !stopped.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(CWD, &real, CWD, &twin, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
        swaps
    });
    let mut read = 0;
    for round in 0..1_500 {
        let result = bench.call("read", json!({"path": "real/a.txt"})).await;
        assert!(!text(&result).contains("OUTSIDE"), "escaped in round {round}");
        read += usize::from(result.end == ToolEnd::Completed);
        bench.call("write", json!({"path": "real/a.txt", "content": "inside"})).await;
        if round % 20 == 0 {
            let found = bench.call("grep", json!({"pattern": "OUTSIDE"})).await;
            assert!(!text(&found).contains("a.txt:1:"), "escaped in round {round}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let swaps: usize = swapper.join().unwrap();
    assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "OUTSIDE");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(read > 0 && swaps > 100, "the race was run: {read} reads, {swaps} swaps");
}

/// Somebody agreed to one file; a link then turned to another.
#[tokio::test]
async fn what_was_described_is_what_is_touched() {
    let bench = Bench::new();
    bench.put("a/x", "a");
    bench.put("b/x", "b");
    link("a", bench.path("now"));
    let id = gander_domain::ToolCallId::new(uuid::Uuid::from_u128(1));
    let arguments = json!({"path": "now/x", "content": "new"});
    let call = bench.tools.describe_call(id, "write", &arguments, &bench.context.workspace).unwrap();
    fs::remove_file(bench.path("now")).unwrap();
    link("b", bench.path("now"));
    let result = bench.tools.run_tool(&call, &bench.context).await;
    assert_eq!(text(&result), "path leads elsewhere than when it was described: now/x");
    assert_eq!((bench.get("a/x"), bench.get("b/x")), ("a".into(), "b".into()));
}

#[tokio::test]
async fn writing_keeps_the_mode_and_leaves_no_traces() {
    let bench = Bench::new();
    bench.put("run.sh", "old");
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    bench.done("write", json!({"path": "run.sh", "content": "new"})).await;
    bench.done("write", json!({"path": "x/y/z.txt", "content": "deep"})).await;
    assert_eq!(fs::metadata(bench.path("run.sh")).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!((bench.get("run.sh"), bench.get("x/y/z.txt")), ("new".into(), "deep".into()));
    assert_eq!(bench.done("list", json!({"hidden": true, "depth": 5})).await, "run.sh\nx/\nx/y/\nx/y/z.txt");
}
