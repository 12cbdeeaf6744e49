//! Who has a signature should find its file: a free function's name stands once in its crate.

use std::collections::BTreeMap;

use crate::{report, source};

/// Names that every file of a family has.
const FAMILIES: [&str; 2] = ["main", "run"];

/// Where one name in several files is meant.
const TWINS: &[(&str, &str)] = &[
    ("crates/store/src/", "each kind of store has the same steps"),
    ("crates/runtime/src/backend/", "each kind of back-end has the same steps"),
    ("crates/tools/src/sandbox/unsupported.rs", "stands in for the others on systems without a sandbox"),
    ("crates/testkit/", "tests only"),
    ("crates/bench/", "measurements only"),
];

#[test]
fn a_free_function_has_a_name_of_its_own_in_its_crate() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in source::rust_sources() {
        let mut steps = source.name.split('/');
        let (Some("crates"), Some(krate), Some("src")) = (steps.next(), steps.next(), steps.next()) else { continue };
        if TWINS.iter().any(|(path, _)| source.name.starts_with(path)) {
            continue;
        }
        for name in source.product.lines().filter_map(free_function) {
            let known = places.entry((krate.to_owned(), name.to_owned())).or_default();
            // Twins for other systems stand side by side.
            if !known.contains(&source.name) {
                known.push(source.name.clone());
            }
        }
    }
    let several = places.iter().filter(|((_, name), files)| files.len() > 1 && !FAMILIES.contains(&name.as_str()));
    report(&several.map(|((_, name), files)| format!("{name} is in {}", files.join(", "))).collect::<Vec<_>>());
}

/// The name of the function that begins in this line, if it is not indented and so belongs to no type.
fn free_function(line: &str) -> Option<&str> {
    let words = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest));
    let words =
        ["const ", "async ", "unsafe "].iter().fold(words, |words, word| words.strip_prefix(word).unwrap_or(words));
    let name = words.strip_prefix("fn ")?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

#[test]
fn free_functions_are_told_from_methods() {
    assert_eq!(
        free_function("pub(crate) async fn post_reply(caller: GooseCaller) -> HandlerResult {"),
        Some("post_reply")
    );
    assert_eq!(free_function("const fn size<T>() -> usize {"), Some("size"));
    assert_eq!(free_function("    pub fn is_done(&self) -> bool {"), None);
}
