//! House rules that no compiler checks: who may depend on whom, how long things may be, what may not appear.

mod artefacts;
mod import_graph;
mod modules;
mod names;
mod places;
mod scan;
mod security;
mod sessions;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use source::{Source, repository, rust_sources, texts};

const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 60;
const LARGEST_CRATE: usize = 20_000;

/// Which of our crates each crate may use; what is missing here is a new crate that needs a rule.
const MAY_USE: [(&str, &[&str]); 19] = [
    ("domain", &[]),
    ("wire", &["domain"]),
    ("store", &["domain"]),
    ("models", &["domain"]),
    ("tools", &["domain"]),
    ("mcp", &["domain", "models", "tools"]),
    ("agent", &["domain", "models", "tools", "mcp"]),
    ("client", &["wire"]),
    ("runtime", &["domain", "store", "models", "tools", "client", "wire"]),
    ("services", &["domain", "store", "models", "tools", "mcp", "agent", "runtime"]),
    ("native", &["domain", "store", "models", "tools", "mcp", "agent", "runtime", "services"]),
    ("http", &["domain", "store", "client", "runtime", "services", "wire"]),
    ("gateway", &["domain", "store", "models", "tools", "mcp", "agent", "runtime", "services", "wire", "http"]),
    (
        "gander",
        &[
            "domain", "wire", "store", "models", "tools", "mcp", "agent", "client", "runtime", "services", "native",
            "http", "gateway",
        ],
    ),
    (
        "cli",
        &[
            "domain", "wire", "store", "models", "tools", "mcp", "agent", "client", "runtime", "services", "native",
            "http", "gateway", "gander",
        ],
    ),
    ("conformance", &["domain", "store", "runtime", "services", "gateway"]),
    ("testkit", &["domain", "wire"]),
    ("bench", &["domain", "testkit"]),
    ("xtask", &[]),
];

/// Crates that do no IO, and dependencies that would let them.
const PURE: [&str; 2] = ["domain", "wire"];
const IMPURE: [&str; 8] = ["tokio", "tokio-util", "reqwest", "sqlx", "axum", "hyper", "rustix", "libc"];

#[test]
fn dependencies_point_one_way() {
    let mut faults = Vec::new();
    let rules = BTreeMap::from(MAY_USE);
    for (name, manifest) in manifests() {
        let used = names(&manifest, "dependencies");
        let ours = used.iter().filter_map(|used| used.strip_prefix("gander-"));
        match rules.get(name.as_str()) {
            Some(allowed) => {
                faults.extend(ours.filter(|used| !allowed.contains(used)).map(|used| format!("{name} uses {used}")));
            }
            None => faults.push(format!("{name} has no rule")),
        }
        if PURE.contains(&name.as_str()) {
            let impure = used.iter().filter(|used| IMPURE.contains(&used.as_str()));
            faults.extend(impure.map(|used| format!("{name} is pure but uses {used}")));
        }
        let dev = names(&manifest, "dev-dependencies");
        let tests_only = |used: &&String| used.starts_with("gander-") && *used != "gander-testkit";
        faults.extend(
            dev.iter()
                .filter(tests_only)
                .filter(|used| !allowed_in_tests(&name, used))
                .map(|used| format!("tests of {name} use {used}")),
        );
    }
    report(&faults);
}

#[test]
fn files_and_functions_stay_short() {
    let mut faults = Vec::new();
    for source in rust_sources() {
        let lines = source.text.lines().count();
        if lines > LONGEST_FILE {
            faults.push(format!("{} has {lines} lines", source.name));
        }
        let long = scan::functions(&source.code).into_iter().filter(|function| function.lines > LONGEST_FUNCTION);
        faults.extend(long.map(|function| format!("{}: {} has {} lines", source.name, function.name, function.lines)));
    }
    report(&faults);
}

#[test]
fn crates_stay_small() {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for source in rust_sources() {
        let Some((name, _)) = source.name.split_once("/src/") else { continue };
        *lines.entry(name.to_owned()).or_default() += source.text.lines().count();
    }
    let large = lines.into_iter().filter(|(_, lines)| *lines > LARGEST_CRATE);
    report(&large.map(|(name, lines)| format!("{name} has {lines} lines")).collect::<Vec<_>>());
}

#[test]
fn every_file_says_what_it_is() {
    let silent = rust_sources().into_iter().filter(|source| !source.text.starts_with("//! "));
    report(&silent.map(|source| format!("{} does not begin with //!", source.name)).collect::<Vec<_>>());
}

#[test]
fn there_is_no_global_state() {
    let globals = ["static", "thread_local", "lazy_static"];
    // The allocator has no other place.
    let product = |source: &Source| source.product.replace("#[global_allocator]\nstatic", "");
    report(&words_in_product(|source| {
        let product = product(source);
        globals.iter().filter(|word| scan::has_word(&product, word)).copied().collect()
    }));
}

#[test]
fn only_the_configuration_reads_the_environment() {
    report(&words_in_product(|source| {
        let may = ["crates/gander/src/config", "crates/testkit/", "crates/bench/", "xtask/src/"];
        let reads = source.product.contains("env::var") && !may.iter().any(|path| source.name.starts_with(path));
        reads.then_some("env::var").into_iter().collect()
    }));
}

/// Who may open files by their paths. Whatever is read for a session, a client or a model goes through `FileAccess`
/// (`crates/tools/src/files/access.rs`), which confines, leaves out secrets and masks.
const OPENS_FILES: &[(&str, &str)] = &[
    ("crates/tools/src/files/workspace.rs", "the confined opener: opens the roots"),
    ("crates/tools/src/files/workspace_opener.rs", "the confined opener: files from the handles of their folders"),
    ("crates/tools/src/process/process_tree.rs", "reads /proc to find what a command left behind"),
    ("crates/gander/src/serve/mod.rs", "stdout, taken for the protocol alone"),
    ("crates/services/src/audit/export.rs", "its own note of what was exported"),
    ("crates/agent/src/modes/catalog.rs", "agents in the owner's own settings folder"),
    ("crates/tools/src/builtin/shell_reads.rs", "decides about shell lines by what git's settings hold; shows nothing"),
    (
        "crates/tools/src/builtin/git_attributes.rs",
        "decides about shell lines by what git's attributes hold; shows one line",
    ),
    ("crates/tools/src/builtin/git_index.rs", "decides about shell lines by the names that git tracks; shows nothing"),
    ("crates/tools/src/protected/", "protected files around a command, by handles of its own; shows only their names"),
    ("crates/tools/src/sandbox/mod.rs", "its own settings for fenced programs"),
    ("crates/tools/src/sandbox/supervisor.rs", "reads /proc to find processes"),
    ("crates/tools/src/sandbox/helper.rs", "tries out, inside the fence, whether a file is hidden"),
    ("crates/gander/src/config/", "the owner's settings"),
    ("crates/cli/src/commands/self_check.rs", "the program's own file"),
    ("xtask/src/dist/", "makes packages from this repository"),
    ("crates/cli/src/commands/", "files that the person names on the command line, read as that person"),
    ("crates/services/src/paths.rs", "the data directory's own files"),
    ("crates/services/src/token", "the tokens, and random bytes"),
    ("crates/gander/src/app/former_node.rs", "which node the server was"),
    ("crates/services/src/browser_access.rs", "hashes of the cookies of browsers"),
    ("crates/services/src/vault.rs", "the file of secrets"),
    ("crates/store/src/sqlite/", "the store's lock, and the name of this boot"),
    (
        "crates/gander/src/backup/files.rs",
        "the data directory and the settings, into a backup for their owner and back",
    ),
    ("crates/gander/src/daemon/spawn.rs", "the log of the background server"),
    ("crates/http/src/peer_user.rs", "reads /proc to find whose a connection is"),
    ("crates/http/src/spool.rs", "files without a name that hold answers"),
    ("crates/http/src/tls.rs", "the server's certificate"),
    ("crates/gateway/src/protocols/a2a/card_signing.rs", "the key that signs agent cards, named in the settings"),
    ("crates/testkit/", "tests only"),
    ("crates/bench/", "measurements only"),
];

#[test]
fn files_are_opened_in_few_places() {
    let opens = ["fs::read(", "fs::read_to_string", "File::open", "tokio::fs", "OpenOptions", "fs::File"];
    let mut used = std::collections::BTreeSet::new();
    let faults = words_in_product(|source| {
        let allowed = OPENS_FILES.iter().find(|(path, _)| source.name.starts_with(path));
        let product = source.product.replace("fs::FileType", "");
        let found: Vec<_> = opens.into_iter().filter(|word| product.contains(word)).collect();
        if let (Some((path, _)), false) = (allowed, found.is_empty()) {
            used.insert(*path);
        }
        if allowed.is_some() { Vec::new() } else { found }
    });
    let stale = OPENS_FILES.iter().filter(|(path, _)| !used.contains(path));
    let stale = stale.map(|(path, why)| format!("no file is opened there any more: {path} ({why})"));
    report(&faults.into_iter().chain(stale).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_to_do_and_no_machine_is_named() {
    // Put together here, so that this file does not hold what it looks for.
    let words = [["TO", "DO"], ["FIX", "ME"]].map(|halves| halves.concat());
    let places = [["/wo", "rk/main"], ["/wo", "rk/shared"], ["/ro", "ot/.cargo"]].map(|halves| halves.concat());
    let mut faults = Vec::new();
    for (name, text) in texts() {
        let in_comment = |line: &str, word: &str| {
            let comment = line.find("//").or_else(|| line.find('#'));
            comment.is_some_and(|comment| line[comment..].contains(word))
        };
        let left = words.iter().filter(|word| text.lines().any(|line| in_comment(line, word)));
        let named = places.iter().filter(|place| text.contains(place.as_str()));
        faults.extend(left.chain(named).map(|found| format!("{name} holds {found}")));
    }
    report(&faults);
}

/// What is shown at other settings than a user has is not shown for the user. `policy_auto` wants a reason.
#[test]
fn tests_and_drivers_keep_the_defaults_that_protect() {
    let is_harness = |name: &str| name.starts_with("interop/") || name.contains("/tests/") && !name.contains("/tidy/");
    let mut faults = Vec::new();
    for (name, text) in texts().into_iter().filter(|(name, _)| is_harness(name)) {
        for line in text.lines() {
            let is_policy = line.contains("PERMISSIONS_POLICY") && line.contains("auto");
            // Programs on this machine have limits that no honest test reaches.
            let is_limit = line.contains("LIMITS_REQUEST") && line.contains("000");
            if is_policy || is_limit {
                faults.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    report(&faults);
}

#[test]
fn the_scanner_sees_what_it_should() {
    let text =
        "fn a() {\n  let x = \"} fn b() {\"; // fn c() {\n  let y = '{';\n}\npub fn d<'a>(x: &'a str) -> u8 {\n 1 }\n";
    let functions = scan::functions(&scan::code(text));
    let seen: Vec<_> = functions.iter().map(|function| (function.name.as_str(), function.lines)).collect();
    assert_eq!(seen, [("a", 4), ("d", 2)]);
    assert!(scan::has_word(&scan::code("static X: u8 = 1;"), "static"));
    assert!(!scan::has_word(&scan::code("fn f(x: &'static str) {} // static"), "static"));
}

fn words_in_product(mut find: impl FnMut(&Source) -> Vec<&'static str>) -> Vec<String> {
    let sources = rust_sources();
    let product = sources.iter().filter(|source| source.name.contains("/src/"));
    product.flat_map(|source| find(source).into_iter().map(|word| format!("{} has {word}", source.name))).collect()
}

/// Tests of the server may use whatever the server may, and agents whose behaviour is known.
fn allowed_in_tests(name: &str, used: &str) -> bool {
    if (name, used) == ("cli", "gander-conformance") {
        return true;
    }
    let rules = BTreeMap::from(MAY_USE);
    rules.get(name).is_some_and(|allowed| allowed.contains(&used.trim_start_matches("gander-")))
}

pub(crate) fn manifests() -> Vec<(String, toml::Table)> {
    let crates = std::fs::read_dir(repository().join("crates")).expect("the repository has crates");
    let manifest = |path: &Path| -> Option<(String, toml::Table)> {
        let text = std::fs::read_to_string(path.join("Cargo.toml")).ok()?;
        Some((path.file_name()?.to_str()?.to_owned(), text.parse().expect("manifests are TOML")))
    };
    let folders = crates.flatten().map(|entry| entry.path()).chain([repository().join("xtask")]);
    folders.filter_map(|path| manifest(&path)).collect()
}

pub(crate) fn names(manifest: &toml::Table, section: &str) -> Vec<String> {
    let table = manifest.get(section).and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

pub(crate) fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
