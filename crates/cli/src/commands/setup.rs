//! `gander setup`: from nothing to a model that answers. The key is tested with one request, then kept for its owner alone.

use std::io;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use gander::config::{Origin, store_provider};
use gander_client::{AgentConnection, AgentEvent};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::{client, shell_completion};
use crate::commands::{Context, Exit, UsageError};
use crate::output::{Output, Tone, clean_output_text};
use crate::terminal::list_table::print_list_table;
use crate::terminal::person::Person;

/// What the model is asked.
const TEST_PROMPT: &str = "Reply with the single word: ready";

/// Options of `gander setup`.
#[derive(Debug, Default, Args)]
pub(super) struct SetupOptions {
    /// Name of the provider [default: choose from a list]
    #[arg(add = shell_completion::complete_providers())]
    provider: Option<String>,
}

pub(super) async fn run(context: Context, options: SetupOptions) -> anyhow::Result<Exit> {
    let Some(mut person) = Person::at_terminal() else {
        let message =
            "setup asks questions: run it in a terminal, or put the key into the environment (docs/configuration.md)";
        return Err(UsageError(message.to_owned()).into());
    };
    let catalog = super::catalog::fetch_catalog(&context).await?;
    let is_built = |provider: &&Value| provider["built"] != false;
    let all: Vec<&Value> = catalog["providers"].as_array().into_iter().flatten().collect();
    let built: Vec<&Value> = all.iter().copied().filter(is_built).collect();
    let provider = match &options.provider {
        Some(name) => find_setup_provider(&all, name).ok_or_else(|| unknown_setup_provider(&built, name))?,
        None => choose_provider(context.output, &mut person, &built).await?,
    };
    let name = provider["name"].as_str().context("a provider without a name")?;
    ensure!(is_built(&provider), "this build has no support for {name}, build it with: --features genai");
    let model = choose_model(context.output, &mut person, &catalog, provider).await?;
    let key = match provider_key_variable(provider) {
        Some(variable) => match ask_for_provider_key(context.output, &mut person, provider, variable).await? {
            Some(key) => Some((variable.to_owned(), key)),
            None => return Ok(Exit::Cancelled),
        },
        None => None,
    };
    test_setup_model(&context, &model, key.as_ref()).await?;
    context.config.paths.create_folders()?;
    store_provider(&context.config.paths, &model, key)?;
    report_setup_success(&context, &model);
    Ok(Exit::Done)
}

fn unknown_setup_provider(providers: &[&Value], name: &str) -> UsageError {
    let names: Vec<&str> = providers.iter().filter_map(|provider| provider["name"].as_str()).collect();
    UsageError(format!("unknown provider '{}', available: {}", clean_output_text(name), names.join(", ")))
}

/// The provider's usual model, the one that its server on this machine has, or what the person names.
async fn choose_model(
    output: Output,
    person: &mut Person,
    catalog: &Value,
    provider: &Value,
) -> anyhow::Result<String> {
    let name = provider["name"].as_str().unwrap_or_default();
    if let Some(model) = provider["defaultModel"].as_str() {
        return Ok(format!("{name}/{model}"));
    }
    let ids = catalog["models"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let found: Vec<&str> = ids.filter(|id| id.split_once('/').is_some_and(|(provider, _)| provider == name)).collect();
    let title = clean_output_text(provider["title"].as_str().unwrap_or(name));
    match found.as_slice() {
        [] if provider_key_variable(provider).is_none() => {
            bail!("{title} is not running on this machine: start it, then run `gander setup {name}` again")
        }
        [only] => return Ok((*only).to_owned()),
        several => several.iter().for_each(|id| output.note(&format!("  {}", clean_output_text(id)))),
    }
    loop {
        output.aside(&format!("Which model, as {title} names it? "));
        let Some(line) = person.line().await else { bail!("nothing was chosen") };
        let model = line.trim().trim_start_matches(&format!("{name}/")).to_owned();
        if !model.is_empty() {
            return Ok(format!("{name}/{model}"));
        }
    }
}

fn report_setup_success(context: &Context, model: &str) {
    let output = context.output;
    output.note(&output.error_style().paint(Tone::Good, &format!("{model} answers. It is the default from now on.")));
    output.note(&format!("Saved in {} (mode 600).", context.config.paths.provider_keys().display()));
    // Whatever is set elsewhere comes first: a person who just chose a model should not have to find that out.
    match context.config.origin("model.default") {
        Origin::Default => {}
        Origin::File { path, .. } if path == context.config.paths.provider_keys() => {}
        origin @ (Origin::File { .. } | Origin::Variable(_) | Origin::Flag(_)) => {
            output.note(&format!("But model.default is set by {origin}, which takes precedence."));
        }
    }
    output.note("Try it: gander run \"what is in this folder?\"");
}

async fn choose_provider<'a>(
    output: Output,
    person: &mut Person,
    providers: &[&'a Value],
) -> anyhow::Result<&'a Value> {
    let row = |(provider, number): (&&Value, usize)| {
        let state = if provider["configured"] == true { "ready" } else { "" };
        let text = |name: &str| clean_output_text(provider[name].as_str().unwrap_or_default());
        let key = provider_key_variable(provider).unwrap_or("no key needed").to_owned();
        vec![number.to_string(), text("title"), text("name"), key, state.to_owned()]
    };
    output.note("Which provider do you have a key for?\n");
    let rows: Vec<Vec<String>> = providers.iter().zip(1..).map(row).collect();
    print_list_table(output, &["", "PROVIDER", "NAME", "KEY", ""], &rows)?;
    loop {
        output.aside(&format!("\nEnter 1–{} or a name: ", providers.len()));
        let Some(line) = person.line().await else { bail!("nothing was chosen") };
        let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = number
            .and_then(|index| providers.get(index).copied())
            .or_else(|| find_setup_provider(providers, line.trim()));
        if let Some(provider) = chosen {
            return Ok(provider);
        }
    }
}

fn find_setup_provider<'a>(providers: &[&'a Value], name: &str) -> Option<&'a Value> {
    providers
        .iter()
        .copied()
        .find(|provider| provider["name"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(name)))
}

fn provider_key_variable(provider: &Value) -> Option<&str> {
    provider["keyVariables"][0].as_str()
}

/// The key, or nothing if the person leaves with ctrl-c.
async fn ask_for_provider_key(
    output: Output,
    person: &mut Person,
    provider: &Value,
    variable: &str,
) -> anyhow::Result<Option<String>> {
    let title = clean_output_text(provider["title"].as_str().unwrap_or_default());
    output.aside(&format!("Paste your {title} API key ({variable}; it is not shown): "));
    let hidden = HiddenInput::start();
    // Whoever leaves here must find a terminal that shows what they type.
    let line = tokio::select! {
        line = person.line() => Some(line),
        _ = tokio::signal::ctrl_c() => None,
    };
    drop(hidden);
    output.note("");
    let Some(line) = line else { return Ok(None) };
    let key = line.unwrap_or_default().trim().to_owned();
    ensure!(!key.is_empty() && !key.chars().any(|c| c.is_control() || c.is_whitespace()), "that is not an API key");
    Ok(Some(key))
}

/// Asks the model once, in a session that is deleted afterwards.
async fn test_setup_model(context: &Context, model: &str, key: Option<&(String, String)>) -> anyhow::Result<()> {
    context.output.note(&format!("Asking {model} …"));
    let mut config = context.config.clone();
    config.sections.model.default = Some(model.to_owned());
    if let Some((variable, key)) = key {
        config.keys.set_key(variable.clone(), key.clone());
    }
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&config, &here).await?;
    let opened = connection.client.new_session(here.to_str().unwrap_or("/"));
    let AgentEvent::Opened { session, .. } = connection.wait_for_answer(opened, |_| {}).await? else {
        bail!("the server opened no session")
    };
    let asked = ask_setup_model(&mut connection, &session).await;
    connection.call_method("session/delete", &json!({ "sessionId": session })).await?;
    asked.with_context(|| format!("{model} does not answer, nothing was saved"))
}

async fn ask_setup_model(connection: &mut AgentConnection, session: &str) -> anyhow::Result<()> {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": TEST_PROMPT }] });
    let result = connection.call_method("session/prompt", &params).await?;
    ensure!(result["stopReason"] == "end_turn", "it stopped early: {}", result["stopReason"]);
    Ok(())
}

/// What is typed is not shown for as long as this lives.
struct HiddenInput(Option<Termios>);

impl HiddenInput {
    fn start() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &hidden).ok();
        }
        Self(before)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        }
    }
}
