//! The import graph of ARCHITECTURE.md and docs/imports.md, written from the manifests and the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::modules::{Graph, module_graphs};
use crate::source::repository;
use crate::{manifests, names};

const BEGIN: &str = "<!-- import graph: UPDATE=1 cargo test -p xtask writes it -->\n";
const END: &str = "<!-- end of import graph -->";

#[test]
fn the_import_graph_of_the_crates_is_in_the_architecture() {
    let path = repository().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).expect("there is ARCHITECTURE.md");
    let (before, rest) = text.split_once(BEGIN).expect("ARCHITECTURE.md marks where the graph begins");
    let (_, after) = rest.split_once(END).expect("ARCHITECTURE.md marks where the graph ends");
    let expected = format!("{before}{BEGIN}```\n{}```\n{END}{after}", crate_lines());
    expect_file("ARCHITECTURE.md", &text, &expected);
}

#[test]
fn the_import_graph_of_the_modules_is_in_the_docs() {
    let found = std::fs::read_to_string(repository().join("docs/imports.md")).unwrap_or_default();
    expect_file("docs/imports.md", &found, &module_page());
}

#[test]
fn imports_of_imports_are_left_out() {
    let graph = Graph::from([
        ("a".to_owned(), BTreeSet::from(["b".to_owned(), "c".to_owned()])),
        ("b".to_owned(), BTreeSet::from(["c".to_owned()])),
        ("c".to_owned(), BTreeSet::new()),
    ]);
    assert_eq!(direct_imports(&graph, "a"), ["b"]);
}

fn expect_file(name: &str, found: &str, expected: &str) {
    if std::env::var_os("UPDATE").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(repository().join(name), expected).expect("the file can be written");
        return;
    }
    assert!(found == expected, "{name} is stale: run UPDATE=1 cargo test -p xtask");
}

/// One line per crate, from those that import nothing upwards, without what follows from other lines.
fn crate_lines() -> String {
    let mut graph = Graph::new();
    for (name, manifest) in manifests() {
        let ours = names(&manifest, "dependencies").into_iter().filter_map(|used| short_name(&used));
        graph.insert(name, ours.collect());
    }
    let mut order: Vec<(usize, &String)> = graph.keys().map(|name| (depth(&graph, name), name)).collect();
    order.sort();
    let mut lines = String::new();
    for (_, name) in order {
        let imports = direct_imports(&graph, name);
        let imports = if imports.is_empty() { "nothing of ours".to_owned() } else { imports.join(", ") };
        writeln!(lines, "{name:<12} ─► {imports}").expect("a string takes everything");
    }
    lines
}

fn short_name(dependency: &str) -> Option<String> {
    match dependency {
        "gander" => Some("gander".to_owned()),
        other => other.strip_prefix("gander-").map(str::to_owned),
    }
}

fn module_page() -> String {
    let mut page = "# Imports between modules\n\nWritten by `UPDATE=1 cargo test -p xtask` from the sources. A module \
                    may import those below it; `xtask/tests/tidy` fails on a circle.\n"
        .to_owned();
    for (name, graph) in module_graphs() {
        writeln!(page, "\n## {name}\n\n| module | imports |\n|---|---|").expect("a string takes everything");
        let mut order: Vec<(usize, &String)> = graph.keys().map(|module| (depth(&graph, module), module)).collect();
        order.sort_by(|one, other| other.cmp(one));
        for (_, module) in order {
            let imports: Vec<&str> = graph[module].iter().map(String::as_str).collect();
            let imports = if imports.is_empty() { "–".to_owned() } else { imports.join(", ") };
            writeln!(page, "| `{module}` | {imports} |").expect("a string takes everything");
        }
    }
    page
}

/// What is imported and not reached through another import.
fn direct_imports<'a>(graph: &'a Graph, name: &str) -> Vec<&'a str> {
    let imports = &graph[name];
    let through = |import: &&String| {
        let others = imports.iter().filter(|other| *other != *import);
        others.into_iter().any(|other| reaches(graph, other, import, &mut BTreeSet::new()))
    };
    imports.iter().filter(|import| !through(import)).map(String::as_str).collect()
}

fn reaches(graph: &Graph, from: &str, to: &str, seen: &mut BTreeSet<String>) -> bool {
    let Some(imports) = graph.get(from).filter(|_| seen.insert(from.to_owned())) else { return false };
    imports.contains(to) || imports.iter().any(|next| reaches(graph, next, to, seen))
}

/// How many crates or modules lie below, one upon the other. A circle counts once.
fn depth(graph: &Graph, name: &str) -> usize {
    depth_below(graph, name, &mut BTreeMap::new())
}

fn depth_below(graph: &Graph, name: &str, known: &mut BTreeMap<String, usize>) -> usize {
    if let Some(depth) = known.get(name) {
        return *depth;
    }
    known.insert(name.to_owned(), 0);
    let imports = graph.get(name).into_iter().flatten();
    let depth = imports.map(|import| depth_below(graph, import, known) + 1).max().unwrap_or(0);
    known.insert(name.to_owned(), depth);
    depth
}
