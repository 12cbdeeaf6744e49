//! How many places a new protocol, back-end, tool, event or setting touches, as ARCHITECTURE.md lists them.

use std::collections::BTreeSet;

use crate::source::{repository, rust_sources};

/// Protocols, and their variant of `domain::caller::Protocol`.
const PROTOCOLS: [(&str, &str); 5] =
    [("a2a", "A2a"), ("acp", "Acp"), ("acp_rest", "AcpRest"), ("adk", "Adk"), ("goose", "Goose")];

/// Where the server side of a protocol is named outside of its own folders. A protocol without settings leaves
/// out their section; nothing else may know it.
const NAMES_PROTOCOLS: [(&str, &str); 4] = [
    ("crates/domain/src/caller.rs", "its variant of `Protocol`"),
    ("crates/gateway/src/protocols/mod.rs", "its module"),
    ("crates/gateway/src/server/router.rs", "its line in the route table"),
    ("crates/gander/src/config/sections.rs", "its settings section"),
];

/// Who else names one, and why.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("crates/runtime/src/backend/", "a remote agent is spoken to in its own protocol"),
    ("crates/gander/src/config/agents.rs", "which protocol a remote agent speaks is a setting"),
    (
        "crates/gander/src/app",
        "settings are handed over, what A2A keeps is opened, and what goose writes into scheduled sessions is chosen",
    ),
    ("crates/gander/src/config/proxy.rs", "the proxy is ADK in front of goose"),
    ("crates/cli/src/", "commands that are about one protocol"),
];

#[test]
fn a_protocol_is_known_in_the_listed_places_alone() {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for source in rust_sources().into_iter().filter(|source| is_server_side(&source.name)) {
        for (folder, variant) in PROTOCOLS.into_iter().filter(|(folder, _)| !is_own(&source.name, folder)) {
            if !names_protocol(&source.product, folder, variant) {
                continue;
            }
            let listed = NAMES_PROTOCOLS.iter().chain(&EXCEPTIONS).find(|(path, _)| source.name.starts_with(path));
            match listed {
                Some((path, _)) => drop(seen.insert(*path)),
                None => faults.push(format!("{} knows {folder}", source.name)),
            }
        }
    }
    let stale = NAMES_PROTOCOLS.iter().chain(&EXCEPTIONS).filter(|(path, _)| !seen.contains(path));
    faults.extend(stale.map(|(path, why)| format!("names no protocol any more: {path} ({why})")));
    crate::report(&faults);
}

#[test]
fn a_protocol_has_its_two_folders_and_one_line_in_the_route_table() {
    let root = repository();
    let routes = std::fs::read_to_string(root.join("crates/gateway/src/server/router.rs")).expect("there are routes");
    let mut faults = Vec::new();
    for (folder, variant) in PROTOCOLS {
        for parent in ["crates/wire/src", "crates/gateway/src/protocols"] {
            if !root.join(parent).join(folder).join("mod.rs").is_file() {
                faults.push(format!("{parent}/{folder} is no folder"));
            }
        }
        let lines = routes.lines().filter(|line| line.trim_start().starts_with(&format!("{variant}: "))).count();
        if lines != 1 {
            faults.push(format!("{folder} has {lines} lines in the route table"));
        }
    }
    crate::report(&faults);
}

/// The architecture names every place, so that the list there and this test do not drift apart.
#[test]
fn the_architecture_names_the_places() {
    let text = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("there is ARCHITECTURE.md");
    let missing = NAMES_PROTOCOLS.iter().filter(|(path, _)| !text.contains(path));
    crate::report(
        &missing.map(|(path, why)| format!("ARCHITECTURE.md does not name {path} ({why})")).collect::<Vec<_>>(),
    );
}

/// The wire crate has folders of its own kind, and tests may know everything.
fn is_server_side(name: &str) -> bool {
    let product = name.contains("/src/") && !name.ends_with("/tests.rs");
    let others =
        ["crates/wire/", "crates/testkit/", "crates/bench/", "crates/conformance/", "crates/client/", "xtask/"];
    product && !others.iter().any(|path| name.starts_with(path))
}

fn is_own(name: &str, folder: &str) -> bool {
    name.starts_with(&format!("crates/gateway/src/protocols/{folder}/"))
}

fn names_protocol(code: &str, folder: &str, variant: &str) -> bool {
    let module = format!("protocols::{folder}::");
    let section = format!("{variant}Section");
    let states = format!("{variant}State");
    let variants = format!("Protocol::{variant}");
    let ends = |text: &str| code.match_indices(text).any(|(at, _)| !continues(&code[at + text.len()..]));
    let declared = format!("pub mod {folder}");
    let listed = code.split("use crate::protocols::{").skip(1).filter_map(|rest| rest.split('}').next());
    let listed = listed.flat_map(|names| names.split(',')).any(|name| name.trim() == folder);
    listed || code.contains(&module) || [section, states, variants, declared].iter().any(|text| ends(text))
}

/// True if a name goes on.
fn continues(rest: &str) -> bool {
    rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}
