//! Completion in a shell: subcommands and options, and what the server knows: sessions, models, modes, extensions, …

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use gander::config::{Config, Environment, Flags};
use gander::daemon::{Attached, connect_to_attach};
use gander_client::{AgentConnection, Link};
use gander_services::token;
use serde_json::{Value, json};

use super::flags::Cli;
use super::session_id::{busy_sessions, short_session_id_length};
use super::{client, recipes};
use crate::output::{Output, clean_output_text};

/// The script of the shell sets it when it asks for candidates.
const VARIABLE: &str = "GANDER_COMPLETE";

/// A shell that waits longer feels broken.
const PATIENCE: Duration = Duration::from_secs(2);

/// Characters of a candidate's explanation.
const MAX_HELP_CHARS: usize = 60;

/// Answers the script of a shell, and then ends the process. Does nothing in any other run.
pub(super) fn answer_shell() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Prints the script for a shell. It calls whatever `gander` is found in the path, so it survives an upgrade.
pub(super) fn print_completion_script(shell: Shell, output: Output) -> anyhow::Result<()> {
    let (shells, mut script) = (Shells::builtins(), Vec::new());
    let shell = shells.completer(&shell.to_string());
    let shell = shell.ok_or_else(|| anyhow::anyhow!("there is no completion for this shell"))?;
    shell.write_registration(VARIABLE, "gander", "gander", "gander", &mut script)?;
    Ok(output.piece(&String::from_utf8_lossy(&script))?)
}

/// Sessions, the latest first.
pub(super) fn complete_sessions() -> ArgValueCandidates {
    complete_from_server(async |connection, _| {
        let page = connection.call_method("_gander/sessions/list", &json!({})).await?;
        Ok(session_candidates(completion_items(&page, "sessions")))
    })
}

/// Sessions with a turn under way.
pub(super) fn complete_running_sessions() -> ArgValueCandidates {
    complete_from_server(async |connection, _| Ok(session_candidates(&busy_sessions(connection).await?)))
}

pub(super) fn complete_models() -> ArgValueCandidates {
    complete_from_catalog("models", "id", "")
}

pub(super) fn complete_modes() -> ArgValueCandidates {
    complete_from_catalog("modes", "name", "description")
}

pub(super) fn complete_providers() -> ArgValueCandidates {
    complete_from_catalog("providers", "name", "title")
}

/// MCP servers and built-in tools that are in use.
pub(super) fn complete_extensions() -> ArgValueCandidates {
    complete_from_list("_gander/extensions/list", "extensions", "name", "place")
}

pub(super) fn complete_schedules() -> ArgValueCandidates {
    complete_from_list("_goose/unstable/schedules/list", "jobs", "id", "cron")
}

pub(super) fn complete_apps() -> ArgValueCandidates {
    complete_from_list("_goose/unstable/apps/list", "apps", "name", "description")
}

/// What was allowed with "always".
pub(super) fn complete_grants() -> ArgValueCandidates {
    complete_from_list("_gander/grants/list", "grants", "id", "text")
}

/// Recipes that were saved in the server.
pub(super) fn complete_saved_recipes() -> ArgValueCandidates {
    complete_from_server(async |connection, _| saved_recipe_candidates(connection).await)
}

/// Files, recipes by name, and those that were saved in the server.
pub(super) fn complete_all_recipes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let files = PathCompleter::any().complete(current);
        let named = ask_server_for_completion(async |connection, config| {
            let here = std::env::current_dir()?;
            let names = recipes::recipe_files(config, &here).into_iter();
            let mut named: Vec<CompletionCandidate> =
                names.filter_map(|path| Some(CompletionCandidate::new(path.file_stem()?))).collect();
            named.extend(saved_recipe_candidates(connection).await?);
            Ok(named)
        });
        let begins = |candidate: &CompletionCandidate| {
            candidate.get_value().as_encoded_bytes().starts_with(current.as_encoded_bytes())
        };
        named.into_iter().filter(begins).chain(files).collect()
    })
}

/// Tokens that were made for others.
pub(super) fn complete_tokens() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let tokens =
            load_config_for_completion().and_then(|config| token::list_tokens(&config.paths).ok()).unwrap_or_default();
        tokens.into_iter().map(|token| CompletionCandidate::new(token.name)).collect::<Vec<_>>()
    })
}

/// Time zones by name.
pub(super) fn complete_zones() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        jiff::tz::db().available().map(|zone| CompletionCandidate::new(zone.as_str())).collect::<Vec<_>>()
    })
}

/// These words.
pub(super) fn complete_words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect::<Vec<_>>())
}

async fn saved_recipe_candidates(connection: &mut AgentConnection) -> anyhow::Result<Vec<CompletionCandidate>> {
    let saved = connection.call_method("_goose/unstable/recipes/list", &json!({})).await?;
    let recipe = |manifest: &Value| completion_candidate(&manifest["id"], &manifest["recipe"]["title"]);
    Ok(completion_items(&saved, "manifests").iter().filter_map(recipe).collect())
}

fn session_candidates(sessions: &[Value]) -> Vec<CompletionCandidate> {
    let ids: Vec<&str> = sessions.iter().filter_map(|session| session["sessionId"].as_str()).collect();
    let length = short_session_id_length(&ids);
    let main = sessions.iter().filter(|session| session["parent"].is_null());
    let short = |session: &Value| {
        let id: String = session["sessionId"].as_str()?.chars().take(length).collect();
        completion_candidate(&id.into(), &session["title"])
    };
    // Shells sort candidates by themselves unless each says where it stands.
    main.filter_map(short).enumerate().map(|(n, candidate)| candidate.display_order(Some(n))).collect()
}

/// A member of what sessions in this folder can be set to.
fn complete_from_catalog(list: &'static str, value: &'static str, help: &'static str) -> ArgValueCandidates {
    complete_from_server(async move |connection, _| {
        let here = std::env::current_dir()?;
        let catalog = connection.call_method("_gander/catalog", &json!({ "cwd": here })).await?;
        Ok(completion_items(&catalog, list)
            .iter()
            .filter_map(|item| completion_candidate(&item[value], &item[help]))
            .collect())
    })
}

fn complete_from_list(
    method: &'static str,
    list: &'static str,
    value: &'static str,
    help: &'static str,
) -> ArgValueCandidates {
    complete_from_server(async move |connection, _| {
        let answer = connection.call_method(method, &json!({})).await?;
        Ok(completion_items(&answer, list)
            .iter()
            .filter_map(|item| completion_candidate(&item[value], &item[help]))
            .collect())
    })
}

fn completion_items<'a>(answer: &'a Value, list: &str) -> &'a [Value] {
    answer[list].as_array().map_or(&[], Vec::as_slice)
}

fn completion_candidate(value: &Value, help: &Value) -> Option<CompletionCandidate> {
    let value = match value {
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            clean_output_text(value.as_str()?)
        }
    };
    let help = clean_output_text(help.as_str().unwrap_or_default()).replace(['\n', '\t'], " ");
    let help = Some(help).filter(|help| !help.is_empty());
    let help = help.map(|help| StyledStr::from(help.chars().take(MAX_HELP_CHARS).collect::<String>()));
    Some(CompletionCandidate::new(value).help(help))
}

fn complete_from_server<F>(ask: F) -> ArgValueCandidates
where
    F: AsyncFn(&mut AgentConnection, &Config) -> anyhow::Result<Vec<CompletionCandidate>> + Send + Sync + 'static,
{
    ArgValueCandidates::new(move || ask_server_for_completion(&ask))
}

/// What the server of the data directory says. Whatever goes wrong, a shell has only fewer candidates.
fn ask_server_for_completion<F>(ask: F) -> Vec<CompletionCandidate>
where
    F: AsyncFn(&mut AgentConnection, &Config) -> anyhow::Result<Vec<CompletionCandidate>>,
{
    let Some(config) = load_config_for_completion() else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let answer = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            let mut connection = find_server_for_completion(&config).await?;
            ask(&mut connection, &config).await
        })
        .await
    });
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

/// The server that runs, of whatever build. If none runs and there are sessions, one is started, as the command that is
/// being typed would do.
async fn find_server_for_completion(config: &Config) -> anyhow::Result<AgentConnection> {
    let here = std::env::current_dir()?;
    if let Some(Attached { reader, writer, .. }) =
        connect_to_attach(&config.paths, &client::client_hello(config, &here)).await?
    {
        return client::introduce_client(Link::from_line_streams(reader, writer)).await;
    }
    anyhow::ensure!(config.paths.data_directory().join("log.db").exists(), "nothing was ever stored here");
    client::connect_client(config, &here).await
}

/// The settings that the command being typed would have.
fn load_config_for_completion() -> Option<Config> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let flags = Flags {
        data: completed_flag_value(&words, "--data"),
        config: completed_flag_value(&words, "--config"),
        values: Vec::new(),
    };
    let config = Config::load(&flags, &Environment::of_process()).ok()?;
    Some(Config { helper: std::env::current_exe().ok(), ..config })
}

/// `--flag value` or `--flag=value` among the words of a line.
fn completed_flag_value(words: &[OsString], flag: &str) -> Option<PathBuf> {
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix(flag)?.strip_prefix('='));
    let apart = || words.iter().skip_while(|word| *word != flag).nth(1).map(PathBuf::from);
    joined.map(PathBuf::from).or_else(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_is_typed_says_which_data_directory() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in ["gander -- gander --data /a run", "gander -- gander run --data=/a --session"] {
            assert_eq!(completed_flag_value(&words(line), "--data"), Some(PathBuf::from("/a")), "{line}");
        }
        assert_eq!(completed_flag_value(&words("gander -- gander run --data"), "--data"), None);
    }
}
