//! The files in `deploy/` are what they say. The chart is parsed here and was not rendered: no Helm is at hand.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use gander::config::SETTINGS;
use serde_json::Value;

#[test]
fn the_compose_file_starts_nodes_of_known_roles() -> anyhow::Result<()> {
    let compose: Value = serde_saphyr::from_str(&std::fs::read_to_string(deploy("compose.yaml"))?)?;
    let services = compose["services"].as_object().context("no services")?;
    let mut roles = Vec::new();
    for (name, service) in services.iter().filter(|(name, _)| *name != "database") {
        let command: Vec<&str> =
            service["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        ensure!(command.first() == Some(&"serve"), "{name} does not serve: {command:?}");
        roles.extend(command.iter().skip_while(|word| **word != "--role").nth(1).map(|role| (*role).to_owned()));
    }
    roles.sort_unstable();
    assert_eq!(roles, ["gateway", "gateway", "worker", "worker"]);
    Ok(())
}

#[test]
fn the_charts_templates_parse_and_use_values_that_exist() -> anyhow::Result<()> {
    let chart = deploy("helm/gander");
    let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(chart.join("values.yaml"))?)?;
    let about: Value = serde_saphyr::from_str(&std::fs::read_to_string(chart.join("Chart.yaml"))?)?;
    assert_eq!((&about["apiVersion"], &about["name"]), (&"v2".into(), &"gander".into()));
    for template in std::fs::read_dir(chart.join("templates"))? {
        let path = template?.path();
        let text = std::fs::read_to_string(&path)?;
        let actions = template_actions(&text).with_context(|| path.display().to_string())?;
        check_blocks(&actions).with_context(|| path.display().to_string())?;
        for used in actions.iter().flat_map(|action| value_paths(action)) {
            ensure!(values.pointer(&used).is_some(), "{}: no such value: {used}", path.display());
        }
        let manifest: Value =
            serde_saphyr::from_str(&without_actions(&text)).with_context(|| path.display().to_string())?;
        ensure!(manifest["kind"].is_string() && manifest["metadata"]["name"].is_string(), "{}", path.display());
    }
    Ok(())
}

#[test]
fn every_variable_in_the_files_is_a_setting() -> anyhow::Result<()> {
    let known: Vec<String> = SETTINGS.iter().map(|setting| setting.variable()).collect();
    for file in ["compose.yaml", "gander-node.service", "helm/gander/templates/nodes.yaml", "helm/gander/values.yaml"] {
        let text = std::fs::read_to_string(deploy(file))?;
        let words =
            text.split(|c: char| !c.is_ascii_uppercase() && c != '_').filter(|word| word.starts_with("GANDER_"));
        for word in words.filter(|word| !["GANDER_DATA", "GANDER_CONFIG", "GANDER_KEY"].contains(word)) {
            ensure!(known.iter().any(|name| name == word), "{file}: no such setting: {word}");
        }
    }
    Ok(())
}

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// What stands between `{{` and `}}`, in order.
fn template_actions(text: &str) -> anyhow::Result<Vec<String>> {
    let mut actions = Vec::new();
    for piece in text.split("{{").skip(1) {
        let (action, rest) = piece.split_once("}}").context("an action is not closed")?;
        ensure!(!rest.contains("}}"), "an action is closed twice: {action}");
        actions.push(action.trim_matches(['-', ' ']).to_owned());
    }
    Ok(actions)
}

fn check_blocks(actions: &[String]) -> anyhow::Result<()> {
    let mut open = 0_usize;
    for action in actions {
        match action.split_whitespace().next().unwrap_or_default() {
            "if" | "range" | "with" | "define" => open += 1,
            "end" => open = open.checked_sub(1).context("an end without a beginning")?,
            _ => {}
        }
    }
    ensure!(open == 0, "a block has no end");
    Ok(())
}

/// The values that an action names, as JSON pointers.
fn value_paths(action: &str) -> Vec<String> {
    let words = action.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '$');
    let paths = words.filter_map(|word| word.trim_start_matches('$').strip_prefix(".Values."));
    paths.map(|path| format!("/{}", path.replace('.', "/"))).collect()
}

/// The manifest with a word in the place of each action, and without the lines that are only actions.
fn without_actions(text: &str) -> String {
    let lines = text.lines().filter(|line| !(line.trim().starts_with("{{") && line.trim().ends_with("}}")));
    let plain = |line: &str| {
        let pieces = line.split("{{").enumerate();
        pieces
            .map(|(at, piece)| match at {
                0 => piece.to_owned(),
                _ => format!("word{}", piece.split_once("}}").map_or("", |(_, rest)| rest)),
            })
            .collect::<String>()
    };
    lines.map(plain).collect::<Vec<_>>().join("\n")
}
