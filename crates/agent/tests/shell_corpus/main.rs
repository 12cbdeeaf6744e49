//! The corpus of shell lines, run for real.
//!
//! Every line that would run unasked is run by the product's own shell tool in a tree full of tripwires; then nothing
//! may have changed, nothing may have been started, and no secret may have been shown. Beside the lines in files,
//! each option that an installed program of the read-only table names in its help is tried in several forms.
//! This program is also the helper that puts the fence around commands, so it has a `main` of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod attributes;
mod bench;
mod opened;
mod options;
mod repositories;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use gander_domain::ToolCall;
use gander_tools::sandbox::{self, Bubblewrap, HELPER, Layers};

use bench::Bench;
use opened::Opened;
use tree::Tree;

const HOSTILE: [(&str, &str); 8] = [
    ("bypass", include_str!("../../../tools/tests/tools/permission/bypass.txt")),
    ("programs", include_str!("lines/programs.txt")),
    ("git", include_str!("lines/git.txt")),
    ("search", include_str!("lines/search.txt")),
    ("grammar", include_str!("lines/grammar.txt")),
    ("paths", include_str!("lines/paths.txt")),
    ("forms", include_str!("lines/forms.txt")),
    ("builtins", include_str!("lines/builtins.txt")),
];

const PLAIN: &str = include_str!("../../../tools/tests/tools/permission/plain.txt");
const EVERYDAY: &str = include_str!("lines/everyday.txt");

/// Lines that are run as one, which is what costs time. One by one again if something happened.
const TOGETHER: usize = 20;

/// Gives what it found to be wrong.
type Check = fn() -> Vec<String>;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == HELPER) {
        return helper(&words[1..]);
    }
    // The longest first, so that the last core is not idle for long.
    let checks: [(&str, Check); 5 + options::PARTS] = [
        ("no_option_of_a_program_has_an_effect_unasked_0", || options::every_option(0)),
        ("no_option_of_a_program_has_an_effect_unasked_1", || options::every_option(1)),
        ("no_option_of_a_program_has_an_effect_unasked_2", || options::every_option(2)),
        ("no_option_of_a_program_has_an_effect_unasked_3", || options::every_option(3)),
        ("no_hostile_line_has_an_effect_unasked", || hostile_lines(Bubblewrap::IfItWorks)),
        ("no_hostile_line_has_an_effect_unasked_without_bubblewrap", || hostile_lines(Bubblewrap::Never)),
        ("attributes_of_a_repository_show_no_secret_unasked", attributes::every_attribute),
        ("a_repository_starts_nothing_unasked", repositories::every_setting),
        ("everyday_lines_run_unasked", everyday_lines),
    ];
    let filters: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let filters: Vec<&String> =
        filters.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let found = on_every_core(checks.into_iter().filter(|(name, _)| wanted(name)).collect());
    let failed = found.iter().filter(|faults| !faults.is_empty()).count();
    for fault in found.iter().flatten() {
        println!("  {fault}");
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let passed = found.len() - failed;
    println!("test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the checks, as many at a time as there are cores; gives the faults of each. They share nothing: each has trees of
/// its own.
fn on_every_core(checks: Vec<(&str, Check)>) -> Vec<Vec<String>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (left, found) = (Mutex::new(checks.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((name, check)) = next else { break };
                    let started = std::time::Instant::now();
                    let faults = check();
                    let word = if faults.is_empty() { "ok" } else { "FAILED" };
                    println!("test {name} ... {word} ({:.1} s)", started.elapsed().as_secs_f32());
                    found.lock().unwrap().push(faults);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Becomes the command inside of a fence, stands above it, or says what holds there.
fn helper(words: &[OsString]) -> ExitCode {
    let plan = words[0].to_string_lossy();
    if words.get(1).is_some_and(|word| word == "--probe") {
        println!("{}", sandbox::probe_sandbox(&plan, Path::new(&words[2])).unwrap());
        return ExitCode::SUCCESS;
    }
    let error = match plan == "--supervise" {
        true => sandbox::supervise_command(&words[2..]),
        false => sandbox::enter_sandbox_and_exec(&plan, &words[2..]),
    };
    println!("{error}");
    ExitCode::FAILURE
}

fn hostile_lines(bubblewrap: Bubblewrap) -> Vec<String> {
    let lines: Vec<&str> =
        HOSTILE.iter().flat_map(|(_, lines)| lines.lines()).filter(|line| !line.is_empty()).collect();
    let mut faults = if lines.len() >= 500 { vec![] } else { vec![format!("only {} lines", lines.len())] };
    let tree = Tree::plant();
    let numbers = by_number(&tree);
    let all = lines.iter().copied().chain(PLAIN.lines()).chain(numbers.iter().map(String::as_str));
    let tried = Tried::in_tree(&tree, bubblewrap, all);
    println!("hostile and plain lines, {}: {tried}", tried.layers);
    faults.extend(tried.faults);
    faults
}

/// Content of a secret file by the number under which the repository keeps it.
fn by_number(tree: &Tree) -> Vec<String> {
    let (secret, other) = (tree.git(&["rev-parse", "HEAD:.env"]), tree.git(&["rev-parse", "HEAD:notes.txt"]));
    let folder = tree.git(&["rev-parse", "HEAD:config"]);
    assert!(secret.len() == 40 && other.len() == 40 && folder.len() == 40);
    let (short, upper) = (&secret[..8], secret.to_uppercase());
    vec![
        format!("git show {secret}"),
        format!("git show {short}"),
        format!("git show {upper}"),
        format!("git show '{secret}'"),
        format!("git show {secret}^0"),
        format!("git show '{secret}^{{}}'"),
        format!("git show '{secret}^{{blob}}'"),
        format!("git show -s {secret}"),
        format!("git show HEAD {secret}"),
        format!("git show {folder}"),
        format!("git show {folder}:prod.env"),
        format!("git diff {secret} {other}"),
        format!("git diff {other} {short}"),
        format!("git diff {other}..{secret}"),
        format!("git diff {secret}...{other}"),
        format!("git diff {other} -- {secret}"),
        format!("git diff {secret}"),
        format!("git diff HEAD:config {folder}"),
        format!("git log -p {secret}"),
        format!("git log -p {secret}..HEAD"),
        format!("git grep . {secret}"),
        format!("git grep -e . {short}"),
        format!("git grep -h . HEAD {secret}"),
        format!("git grep . {folder}"),
        format!("git cat-file -p {secret}"),
        format!("git cat-file blob {secret}"),
        format!("git cat-file -t {secret}"),
        format!("git cat-file -s {secret}"),
        format!("git rev-parse {short}"),
        format!("git describe --always {secret}"),
        format!("git name-rev {secret}"),
        format!("git blame {secret} -- notes.txt"),
        format!("git ls-tree {folder}"),
        format!("git rev-list -n 1 {secret}"),
        format!("git shortlog {secret}"),
    ]
}

/// In a workspace as most are: a repository, a secret file that nobody names, no links.
fn everyday_lines() -> Vec<String> {
    let lines: Vec<&str> = EVERYDAY.lines().filter(|line| !line.is_empty()).collect();
    let tree = Tree::plant();
    let folder = ordinary(&tree);
    let bench = Bench::new(&tree, &folder, Bubblewrap::IfItWorks);
    if !in_force(&bench) {
        return no_sandbox();
    }
    let asked: Vec<&str> = lines.iter().copied().filter(|line| bench.unasked(line).is_none()).collect();
    let unasked = lines.len() - asked.len();
    println!("everyday lines: {unasked} of {} run unasked; these ask: {asked:#?}", lines.len());
    let mut faults = Vec::new();
    if lines.len() < 300 {
        faults.push(format!("only {} everyday lines", lines.len()));
    }
    if unasked * 100 < lines.len() * 95 {
        faults.push(format!("only {unasked} of {} everyday lines run unasked", lines.len()));
    }
    let unasked: Vec<String> =
        lines.iter().filter(|line| bench.unasked(line).is_some()).map(|line| (*line).into()).collect();
    let (several, single): (Vec<String>, Vec<String>) = unasked.into_iter().partition(|line| is_alone(line));
    let groups = single.chunks(TOGETHER).chain(several.chunks(1));
    faults.extend(groups.flat_map(|group| run(&tree, &bench, group)));
    faults
}

/// A clone without tripwires.
fn ordinary(tree: &Tree) -> PathBuf {
    let folder = tree.at("ordinary");
    tree.git_in("outside", &["init", "-q", "-b", "main", "../ordinary"]);
    for name in ["README.md", "notes.txt", "names.txt", "data.csv", "data.bin", "a.txt", "b.txt", "build.log"] {
        std::fs::copy(tree.at("ws").join(name), folder.join(name)).unwrap();
    }
    for name in ["package.json", "Cargo.toml", "Cargo.lock", ".gitignore", ".env.example"] {
        std::fs::copy(tree.at("ws").join(name), folder.join(name)).unwrap();
    }
    for name in ["src/main.rs", "src/lib.rs", "src/util/mod.rs", "tests/basic.rs", "docs/guide.md"] {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::copy(tree.at("ws").join(name), folder.join(name)).unwrap();
    }
    tree.git_in("ordinary", &["add", "."]);
    tree.git_in("ordinary", &["commit", "-q", "-m", "first"]);
    std::fs::write(folder.join("notes.txt"), "changed\n").unwrap();
    std::fs::write(folder.join(".env"), "KEY=SECRETVALUE-ordinary\n").unwrap();
    tree.git_in("ordinary", &["commit", "-q", "-a", "-m", "second"]);
    tree.git_in("ordinary", &["tag", "v1.0"]);
    folder
}

/// True if there is a sandbox. Lines then really run: a corpus whose lines do nothing would find nothing.
pub fn in_force(bench: &Bench) -> bool {
    let in_force = matches!(bench.sandbox.available_layers(), Layers::Some(_));
    if in_force {
        let call = bench.unasked("echo corpus | tr a-z A-Z").unwrap();
        let said = bench.run(&call);
        assert!(said.contains("CORPUS"), "lines do not run: {said}");
    }
    in_force
}

/// Without a sandbox every line asks, and there is nothing to run. A build machine must have one: an older kernel has no
/// layer of its own that is good enough.
pub fn no_sandbox() -> Vec<String> {
    match std::env::var_os("CI") {
        Some(_) => vec!["no layer of the sandbox is in force".to_owned()],
        None => {
            println!("skipped: no layer of the sandbox is in force");
            vec![]
        }
    }
}

/// What became of lines.
pub struct Tried {
    pub layers: String,
    pub lines: usize,
    pub unasked: usize,
    pub faults: Vec<String>,
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lines, unasked, faults, .. } = self;
        write!(f, "{lines} lines, {} ask, {unasked} were run unasked, {} had an effect", lines - unasked, faults.len())
    }
}

impl Tried {
    /// Runs what runs unasked, many at once where they can be joined.
    pub fn in_tree(tree: &Tree, bubblewrap: Bubblewrap, lines: impl Iterator<Item = impl AsRef<str>>) -> Self {
        let bench = Bench::new(tree, &tree.at("ws"), bubblewrap);
        let mut tried =
            Self { layers: bench.sandbox.available_layers().to_string(), lines: 0, unasked: 0, faults: Vec::new() };
        if !in_force(&bench) {
            tried.faults = no_sandbox();
            return tried;
        }
        let [mut together, mut with_git]: [Vec<String>; 2] = Default::default();
        for line in lines {
            let line = line.as_ref();
            tried.lines += 1;
            if bench.unasked(line).is_none() {
                continue;
            }
            tried.unasked += 1;
            let group = if line.contains("git") { &mut with_git } else { &mut together };
            match is_alone(line) {
                true => tried.faults.extend(run(tree, &bench, &[line.to_owned()])),
                false => group.push(line.to_owned()),
            }
            if group.len() == TOGETHER {
                tried.faults.extend(run(tree, &bench, &std::mem::take(group)));
            }
        }
        tried.faults.extend(run(tree, &bench, &together));
        tried.faults.extend(run(tree, &bench, &with_git));
        tried
    }
}

/// A line that cannot be joined to others: it changes the directory, holds more than one command, or searches folders.
/// What a search must not see is hidden from all commands of its line.
fn is_alone(line: &str) -> bool {
    line.contains("cd ") || line.contains([';', '|', '&']) || is_search(line)
}

fn is_search(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let recursive = |word: &str| word == "--recursive" || (!word.starts_with("--") && word.contains('r'));
    match words.next() {
        Some("diff" | "rg") => true,
        Some("grep" | "egrep" | "fgrep") => words.any(|word| word.starts_with('-') && recursive(word)),
        _ => false,
    }
}

fn run(tree: &Tree, bench: &Bench, lines: &[String]) -> Vec<String> {
    let all = bench.unasked(&lines.join(" ; "));
    match all {
        Some(call) if effect(tree, bench, &call, &call.title).is_none() => vec![],
        Some(_) | None => {
            tree.untouched();
            let one = |line: &String| effect(tree, bench, &bench.unasked(line)?, line);
            lines.iter().filter_map(one).collect()
        }
    }
}

/// Runs the call: what it did that it must not do. git looks at every file, secret ones with the others.
fn effect(tree: &Tree, bench: &Bench, call: &ToolCall, line: &str) -> Option<String> {
    let (before, opened) = (tree.state(), Opened::from_now_on(tree));
    let output = bench.run(call);
    let opened = opened.first().filter(|_| !line.contains("git"));
    let found = happened(tree, &before, &output, line);
    found.or_else(|| opened.map(|path| format!("opened {}: {line}", path.display())))
}

/// What a line did that it must not do.
fn happened(tree: &Tree, before: &BTreeMap<PathBuf, String>, output: &str, line: &str) -> Option<String> {
    let after = tree.state();
    let changed = after.iter().find(|(path, facts)| before.get(*path) != Some(facts)).map(|(path, _)| path);
    let changed = changed.or_else(|| before.keys().find(|path| !after.contains_key(*path)));
    if let Some(path) = changed {
        return Some(format!("changed {}: {line}", path.display()));
    }
    let shown = [tree::SECRET, tree::OUTSIDE, tree::SYSTEM].into_iter().find(|text| output.contains(text));
    shown.map(|text| format!("showed {text}: {line}"))
}
