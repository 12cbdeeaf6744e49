//! What is linked into the binary, from cargo's own word: a bill of materials and the licences' texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::release::Release;

/// A package from a registry that the binary is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkedPackage {
    name: String,
    version: String,
    licence: String,
    folder: PathBuf,
}

/// Every package that the binary is linked with on Linux, without ours and without what only tests and builds need.
pub(crate) fn linked_packages(root: &Path) -> Result<Vec<LinkedPackage>, String> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-musl"];
    let output = Command::new("cargo").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let reached = reached_ids(&metadata);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let linked = packages.filter(|package| reached.contains(text(&package["id"])) && !package["source"].is_null());
    let mut linked: Vec<LinkedPackage> = linked.map(linked_package).collect();
    linked.sort();
    Ok(linked)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn linked_package(package: &Value) -> LinkedPackage {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    LinkedPackage {
        name: text(&package["name"]).to_owned(),
        version: text(&package["version"]).to_owned(),
        licence: text(&package["license"]).to_owned(),
        folder: manifest.parent().unwrap_or(&manifest).to_owned(),
    }
}

/// Everything that the binary needs when it runs, from the binary's own package on.
fn reached_ids(metadata: &Value) -> BTreeSet<String> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let start = packages.filter(|package| package["name"] == "gander-cli").map(|package| text(&package["id"]));
    let mut open: Vec<&str> = start.collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !reached.insert(id.to_owned()) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let normal = dependencies.filter(|dependency| {
            dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
        });
        open.extend(normal.map(|dependency| text(&dependency["pkg"])));
    }
    reached
}

/// The bill of materials in CycloneDX's form.
pub(crate) fn bill_of_materials(release: &Release, packages: &[LinkedPackage]) -> String {
    let component = |package: &LinkedPackage| {
        json!({
            "type": "library", "name": package.name, "version": package.version,
            "purl": format!("pkg:cargo/{}@{}", package.name, package.version),
            "licenses": [{ "expression": package.licence.replace('/', " OR ") }],
        })
    };
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "gander", "version": release.version,
            "properties": [{ "name": "commit", "value": release.commit }],
        }},
        "components": packages.iter().map(component).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

/// The licences' texts, each once, with the packages that are under it.
pub(crate) fn notices(packages: &[LinkedPackage]) -> Result<String, String> {
    let mut texts: BTreeMap<[u8; 32], (String, Vec<String>)> = BTreeMap::new();
    for package in packages {
        let mut found = licence_files(&package.folder)?;
        if found.is_empty() {
            found.push(format!("{} (no text in the package)", package.licence));
        }
        for licence in found {
            let (_, users) = texts.entry(Sha256::digest(licence.trim()).into()).or_insert((licence, Vec::new()));
            users.push(format!("{} {} ({})", package.name, package.version, package.licence));
        }
    }
    let mut sections: Vec<(String, Vec<String>)> = texts.into_values().collect();
    sections.sort_by(|a, b| a.1.cmp(&b.1));
    let mut all = String::from(
        "gander contains these packages, under these licences. Those of its web page are at /licences of the server.\n",
    );
    for (licence, users) in sections {
        all += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), users.join("\n"), licence.trim_end());
    }
    Ok(all)
}

fn licence_files(folder: &Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let is_licence = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|word| name.starts_with(word))
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file() && path.file_name().is_some_and(|name| is_licence(&name.to_string_lossy())));
    paths.sort();
    // Some packages carry a licence that is no text.
    Ok(paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}
