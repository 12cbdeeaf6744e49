//! Which modules of a crate import each other in a circle. What is drawn one way must be read one way.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, rust_sources};

/// Modules, each with those that it imports.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let found: BTreeSet<(String, Vec<String>)> = module_graphs()
        .into_iter()
        .flat_map(|(name, graph)| circles(&graph).into_iter().map(move |circle| (name.clone(), circle)))
        .collect();
    assert_eq!(found, BTreeSet::new());
}

#[test]
fn circles_are_found() {
    let graph = |pairs: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in pairs {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    };
    assert_eq!(circles(&graph(&[("a", "b"), ("b", "c")])), Vec::<Vec<String>>::new());
    assert_eq!(circles(&graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")])), [["a", "b", "c"]]);
}

/// The top modules of every crate, by crate.
pub(crate) fn module_graphs() -> BTreeMap<String, Graph> {
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for source in rust_sources() {
        let mut pieces = source.name.split('/');
        if let (Some("crates"), Some(name), Some("src")) = (pieces.next(), pieces.next(), pieces.next()) {
            crates.entry(name.to_owned()).or_default().push(source);
        }
    }
    crates.into_iter().map(|(name, sources)| (name, graph(&sources))).collect()
}

fn graph(sources: &[Source]) -> Graph {
    let root = sources.iter().find(|source| source.name.ends_with("/src/lib.rs"));
    let names: BTreeSet<String> = sources.iter().filter_map(top).collect();
    let shown = root.map(|root| re_exports(&root.product)).unwrap_or_default();
    let mut graph = Graph::new();
    for source in sources {
        let Some(from) = top(source) else { continue };
        let at_top = source.name.split('/').count() == 4;
        let prefixes: &[&str] = if at_top { &["crate::", "super::"] } else { &["crate::"] };
        let used = prefixes.iter().flat_map(|prefix| after(&source.product, prefix));
        let used = used.filter_map(|name| if names.contains(&name) { Some(name) } else { shown.get(&name).cloned() });
        graph.entry(from.clone()).or_default().extend(used.filter(|to| *to != from));
    }
    graph
}

/// The module below the crate's root that a file belongs to.
fn top(source: &Source) -> Option<String> {
    let name = source.name.split('/').nth(3)?.trim_end_matches(".rs");
    (!["lib", "main", "bin"].contains(&name)).then(|| name.to_owned())
}

/// Names that follow a prefix, alone or in braces.
fn after(code: &str, prefix: &str) -> Vec<String> {
    let rests = code.match_indices(prefix).map(|(at, _)| &code[at + prefix.len()..]);
    rests.flat_map(|rest| if rest.starts_with('{') { words(until(rest, '}')) } else { first(rest) }).collect()
}

/// What a crate's root shows of its modules: the module of each name.
fn re_exports(root: &str) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for line in root.split(';').filter(|line| line.trim_start().starts_with("pub use ")) {
        let path = line.trim_start().trim_start_matches("pub use ");
        let Some((module, names)) = path.split_once("::") else { continue };
        shown.extend(words(names).into_iter().map(|name| (name, module.to_owned())));
    }
    shown
}

fn first(text: &str) -> Vec<String> {
    words(text).into_iter().take(1).collect()
}

fn until(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or(text)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Sets of modules that reach each other, each sorted.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|from| (from.as_str(), reached(graph, from))).collect();
    let mutual = |from: &str| -> Vec<String> {
        let back = |to: &&&str| reach.get(**to).is_some_and(|reach| reach.contains(from));
        reach[from].iter().filter(back).map(ToString::to_string).collect()
    };
    let found: BTreeSet<Vec<String>> =
        graph.keys().map(|from| mutual(from)).filter(|circle| circle.len() > 1).collect();
    found.into_iter().collect()
}

fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if seen.insert(next) {
            open.extend(graph.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    seen
}
