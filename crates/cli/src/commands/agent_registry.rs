//! Agents as the public ACP registry describes them: `registry.json`, from a file or an address.

use anyhow::{Context as _, bail};
use serde_json::Value as Json;
use toml::{Table, Value};

/// An agent of a registry, as our own file has it.
#[derive(Debug)]
pub(super) struct RegistryEntry {
    pub(super) entry: Table,
    /// The command that downloads the agent when it first runs.
    pub(super) downloads: Option<String>,
}

/// Reads the agent of this id or name from a registry.
pub(super) async fn read_registry_entry(place: &str, name: &str) -> anyhow::Result<RegistryEntry> {
    let text = match gander::config::is_web_address(place) {
        true => gander_client::fetch_net_text(place).await.with_context(|| format!("cannot fetch {place}"))?,
        false => std::fs::read_to_string(place).with_context(|| format!("cannot read {place}"))?,
    };
    let registry: Json = serde_json::from_str(&text).with_context(|| format!("no registry.json: {place}"))?;
    find_registry_entry(&registry, name).with_context(|| format!("in {place}"))
}

fn find_registry_entry(registry: &Json, name: &str) -> anyhow::Result<RegistryEntry> {
    let agents = registry["agents"].as_array().context("a registry has a list of agents")?;
    let is_named = |agent: &&Json| ["id", "name"].iter().any(|key| agent[*key].as_str() == Some(name));
    let Some(agent) = agents.iter().find(is_named) else {
        let ids: Vec<&str> = agents.iter().filter_map(|agent| agent["id"].as_str()).collect();
        bail!("no such agent, there are {}: {name}", ids.join(", "));
    };
    let distribution = &agent["distribution"];
    let (words, registry_env_table) = registry_package_command(distribution)
        .or_else(|| registry_binary_command(distribution))
        .with_context(|| format!("{name} has no npx, uvx or binary distribution for this machine"))?;
    let mut entry = Table::new();
    let downloads = words.first().is_some_and(|word| word == "npx" || word == "uvx").then(|| words.join(" "));
    entry.insert("command".to_owned(), Value::Array(words.into_iter().map(Value::String).collect()));
    for (key, of) in [("title", "name"), ("description", "description")] {
        let text = agent[of].as_str().filter(|text| !text.is_empty());
        entry.extend(text.map(|text| (key.to_owned(), Value::String(text.to_owned()))));
    }
    if !registry_env_table.is_empty() {
        entry.insert("env".to_owned(), Value::Table(registry_env_table));
    }
    Ok(RegistryEntry { entry, downloads })
}

/// A package that `npx` or `uvx` downloads and runs.
fn registry_package_command(distribution: &Json) -> Option<(Vec<String>, Table)> {
    let (runner, package) = ["npx", "uvx"].into_iter().find_map(|runner| {
        let described = &distribution[runner];
        Some((runner, described["package"].as_str().map(|package| (package, described))?))
    })?;
    let (name, described) = package;
    let first: &[&str] = if runner == "npx" { &["npx", "--yes"] } else { &["uvx"] };
    let words = first.iter().map(|word| (*word).to_owned()).chain([name.to_owned()]);
    Some((words.chain(registry_strings(&described["args"])).collect(), registry_env_table(&described["env"])))
}

/// A program that must be installed already: we do not unpack archives.
fn registry_binary_command(distribution: &Json) -> Option<(Vec<String>, Table)> {
    let platform = format!("{}-{}", std::env::consts::OS.replace("macos", "darwin"), std::env::consts::ARCH);
    let described = &distribution["binary"][platform.as_str()];
    let program = described["cmd"].as_str()?.trim_start_matches("./").to_owned();
    Some((
        std::iter::once(program).chain(registry_strings(&described["args"])).collect(),
        registry_env_table(&described["env"]),
    ))
}

fn registry_strings(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

fn registry_env_table(map: &Json) -> Table {
    let pairs = map.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), Value::String(value.as_str()?.to_owned())))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn registry() -> Json {
        json!({ "version": "1.0.0", "agents": [
            { "id": "one", "name": "One", "description": "The first",
              "distribution": { "npx": { "package": "one@1.2.3", "args": ["--acp"], "env": { "A": "b" } } } },
            { "id": "two", "distribution": { "uvx": { "package": "two==2" } } },
            { "id": "three", "distribution": { "binary": { "linux-x86_64": { "cmd": "./three", "args": ["acp"] } } } },
            { "id": "four", "distribution": { "binary": { "windows-x86_64": { "cmd": "four.exe" } } } },
        ] })
    }

    #[test]
    fn packages_are_run_by_their_runner_and_said_to_be_downloaded() {
        let one = find_registry_entry(&registry(), "one").unwrap();
        assert_eq!(one.downloads.as_deref(), Some("npx --yes one@1.2.3 --acp"));
        assert_eq!(one.entry["title"].as_str(), Some("One"));
        assert_eq!(one.entry["env"]["A"].as_str(), Some("b"));
        assert_eq!(find_registry_entry(&registry(), "two").unwrap().downloads.as_deref(), Some("uvx two==2"));
    }

    #[test]
    fn a_binary_must_be_there_already() {
        if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let three = find_registry_entry(&registry(), "three").unwrap();
            assert_eq!(three.entry["command"].as_array().unwrap()[0].as_str(), Some("three"));
            assert_eq!(three.downloads, None);
        }
        assert!(find_registry_entry(&registry(), "four").unwrap_err().to_string().contains("no npx, uvx or binary"));
    }

    #[test]
    fn an_unknown_agent_is_refused_with_those_that_there_are() {
        assert!(find_registry_entry(&registry(), "five").unwrap_err().to_string().contains("one, two, three, four"));
    }
}
