//! The command line: what can be said, and one file per command that does it.

mod acp;
mod agent_registry;
mod agent_trial;
mod agents;
mod apps;
mod audit;
mod backup;
mod cancel;
mod catalog;
mod chat;
mod client;
mod cluster;
mod config;
mod doctor;
#[cfg(test)]
mod documented;
mod errors;
mod extension_trial;
mod extensions;
mod fence;
mod flags;
mod goose;
mod grants;
mod idle_memory;
mod inspect;
mod login;
mod manual;
mod open;
mod proxy;
mod proxy_flags;
mod recipes;
mod run;
mod schedule;
mod self_check;
mod serve;
mod server;
mod session_id;
mod sessions;
mod setup;
mod shell_completion;
mod store;
mod token;
mod trust;
mod watch;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gander::config::{Config, ConfigError, Environment, FlagValue, Flags, Origin, ProxyError};
use gander_tools::Redactor;

use crate::output::Output;
use crate::trace;

use cluster::ClusterCommand;
pub(crate) use errors::UsageError;
pub use flags::Cli;
use flags::{Command, MannerOptions};
pub(crate) use idle_memory::Allocator;
use idle_memory::IdleMemory;
use run::flags::RunOptions;

/// How a command ended, as a script sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// It went wrong.
    Failed,
    /// The command line or the settings are wrong.
    Usage,
    /// The agent stopped before it was done: out of tokens or turns, or it refused.
    Stopped,
    /// Somebody cancelled it.
    Cancelled,
}

/// What every command works with.
#[derive(Clone, Debug)]
struct Context {
    config: Config,
    output: Output,
}

/// Runs the process's command line. A server gives free memory back through the allocator.
pub fn main(allocator: Allocator) -> ExitCode {
    shell_completion::answer_shell();
    let environment = Environment::of_process();
    if self_check::self_check_asks_for_version(std::env::args_os()) {
        let output = Output::of_process(environment.no_color());
        return block_on_command(self_check::print_self_check_version(output)).unwrap_or(Exit::Failed).into();
    }
    let said = match goose::is_called_goose(std::env::args_os().next()) {
        true => goose::parse_goose_line(std::env::args_os(), &environment),
        // Without a word, at a terminal: somebody wants to talk.
        false if std::env::args_os().len() == 1 && chat::is_chat_possible() => {
            Cli::try_parse_from(["gander", "chat"]).map(|cli| (cli, Vec::new()))
        }
        false => Cli::try_parse().map(|cli| (cli, Vec::new())),
    };
    let (cli, settings) = match said {
        Ok(said) => said,
        Err(error) => error.exit(),
    };
    let output = Output::of_process(environment.no_color());
    let exit = match start_command(cli, settings, &environment, output, allocator) {
        Ok(exit) => exit,
        Err(error) if is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            output.failure(&errors::message(&error));
            let usage = error.is::<ConfigError>() || error.is::<ProxyError>() || error.is::<UsageError>();
            if usage { Exit::Usage } else { Exit::Failed }
        }
    };
    exit.into()
}

fn start_command(
    cli: Cli,
    settings: Vec<FlagValue>,
    environment: &Environment,
    output: Output,
    allocator: Allocator,
) -> anyhow::Result<Exit> {
    let mut command = cli.command;
    if let Command::Completions { shell } = command {
        shell_completion::print_completion_script(shell, output)?;
        return Ok(Exit::Done);
    }
    if let Command::Man { folder } = &command {
        return manual::write_pages(folder);
    }
    if let Command::Fence(options) = &command {
        return Ok(fence::run(options, output));
    }
    if let Command::Config { command } = command {
        return config::run(&command, &cli.shared, environment, output);
    }
    let values = settings.into_iter().chain(command_flag_values(&mut command)).collect();
    let flags = Flags { config: cli.shared.config, data: cli.shared.data, values };
    let mut config = Config { helper: std::env::current_exe().ok(), ..Config::load(&flags, environment)? };
    if let Command::Serve { tls_self_signed, insecure_plain, .. } = &command {
        (config.tls, config.insecure_plain) = (*tls_self_signed, *insecure_plain);
    }
    if let Command::Proxy { command } = &command {
        config = proxy::configure_proxy(config, command, environment)?;
    }
    // A short command says nothing of its own accord.
    let quiet = config.origin("log.filter") == Origin::Default
        && !matches!(command, Command::Serve { .. } | Command::Proxy { .. });
    let filter = if quiet { "error" } else { &config.sections.log.filter };
    trace::start_trace(filter, output.error_style(), Redactor::new(config.known_secrets()));
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    dispatch_command(command, Context { config, output }, allocator)
}

fn dispatch_command(command: Command, context: Context, allocator: Allocator) -> anyhow::Result<Exit> {
    match command {
        Command::Serve { background: false, .. } => serve_command_on(allocator, serve::serve_foreground(context)),
        Command::Serve { background: true, .. } => serve_command_on(allocator, serve::serve_background(context)),
        Command::Server { command } => block_on_command(server::run(context, command)),
        Command::Cluster { command } => block_on_command(cluster::run(context, command)),
        Command::Open(options) => block_on_command(open::run(context, options)),
        Command::Acp { setup: Some(_), .. } => block_on_command(setup::run(context, setup::SetupOptions::default())),
        Command::Acp { standalone, .. } => acp::run(context, standalone),
        Command::Chat(options) => block_on_command(chat::run(context, options)),
        Command::Run(options) => block_on_command(run::run(context, options)),
        Command::Watch(options) => block_on_command(watch::run(context, options)),
        Command::Inspect(options) => block_on_command(inspect::run(context, options)),
        Command::Cancel(options) => block_on_command(cancel::run(context, options)),
        Command::Setup(options) => block_on_command(setup::run(context, options)),
        Command::Models { json } => block_on_command(catalog::run_models(context, json)),
        Command::Modes { json } => block_on_command(catalog::run_modes(context, json)),
        Command::Agents { command, json } => block_on_command(agents::run(context, command, json)),
        Command::Sessions { command } => block_on_command(sessions::run(context, command)),
        Command::Apps { command } => block_on_command(apps::run(context, command)),
        Command::Recipes { command } => block_on_command(recipes::run(context, command)),
        Command::Schedule { command } => block_on_command(schedule::run(context, command)),
        Command::Token { command } => block_on_command(token::run(context, command)),
        Command::Login(options) => block_on_command(login::run_login(context, options)),
        Command::Logout { url } => login::run_logout(&context, &url),
        Command::Audit(options) => block_on_command(audit::run(context, options)),
        Command::Grants { command } => block_on_command(grants::run(context, command)),
        Command::Proxy { .. } => serve_command_on(allocator, proxy::run(context)),
        Command::Trust(options) => block_on_command(trust::run(context, options)),
        Command::Extensions { command } => block_on_command(extensions::run(context, command)),
        Command::Backup { file, force } => block_on_command(backup::run_backup(context, file, force)),
        Command::Restore { file, force } => block_on_command(backup::run_restore(context, file, force)),
        Command::Store(arguments) => block_on_command(store::run(context, arguments.command)),
        Command::Doctor { rebuild } => block_on_command(doctor::run(context, rebuild)),
        Command::Installation { command } => block_on_command(self_check::run(context, command)),
        Command::Config { .. } | Command::Completions { .. } | Command::Man { .. } | Command::Fence(_) => {
            Ok(Exit::Done)
        }
    }
}

/// Settings that were given as flags of a command.
fn command_flag_values(command: &mut Command) -> Vec<FlagValue> {
    let value = |key, flag, text: Option<String>| text.map(|text| FlagValue { key, flag, text });
    let manners = |options: &MannerOptions| {
        let v2 = options.acp_v2.then(|| "true".to_owned());
        [value("acp.dialect", "--dialect", options.dialect.clone()), value("acp.v2", "--acp-v2", v2)]
    };
    let mut more = Vec::new();
    let (model, policy) = match command {
        Command::Run(RunOptions { settings, .. }) => (settings.model.clone(), settings.policy),
        Command::Acp { model, policy, options, .. } => {
            more.extend(manners(options));
            (model.clone(), *policy)
        }
        Command::Serve { options, .. } => {
            more.extend(manners(options));
            (None, None)
        }
        Command::Open(_)
        | Command::Cluster { .. }
        | Command::Chat(_)
        | Command::Server { .. }
        | Command::Sessions { .. }
        | Command::Watch(_)
        | Command::Inspect(_)
        | Command::Cancel(_)
        | Command::Setup(_)
        | Command::Models { .. }
        | Command::Modes { .. }
        | Command::Agents { .. }
        | Command::Apps { .. }
        | Command::Recipes { .. }
        | Command::Schedule { .. }
        | Command::Token { .. }
        | Command::Login(_)
        | Command::Logout { .. }
        | Command::Audit(_)
        | Command::Grants { .. }
        | Command::Trust(_)
        | Command::Extensions { .. }
        | Command::Proxy { .. }
        | Command::Backup { .. }
        | Command::Restore { .. }
        | Command::Store(_)
        | Command::Doctor { .. }
        | Command::Config { .. }
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::Installation { .. }
        | Command::Fence(_) => (None, None),
    };
    more.extend(serve_flags(command));
    [
        value("model.default", "--model", model),
        value("permissions.policy", "--policy", policy.map(|policy| policy.name().to_owned())),
    ]
    .into_iter()
    .chain(more)
    .flatten()
    .collect()
}

/// Those of `gander serve` and `gander cluster`.
fn serve_flags(command: &Command) -> Vec<Option<FlagValue>> {
    if let Command::Cluster { command: ClusterCommand::Status { store: Some(url), .. } } = command {
        return vec![Some(FlagValue { key: "store.url", flag: "--store", text: url.clone() })];
    }
    let Command::Serve { listen, open, open_approve, adk_ui, store, role, node_label, .. } = command else {
        return Vec::new();
    };
    let open = Some(open).filter(|open| !open.is_empty()).map(|open| format!("{open:?}"));
    let value = |key, flag, text: Option<String>| text.map(|text| FlagValue { key, flag, text });
    vec![
        value("server.listen", "--listen", listen.clone()),
        value("server.open", "--open", open),
        value("server.open_approve", "--open-approve", open_approve.then(|| "true".to_owned())),
        value("adk.ui", "--adk-ui", adk_ui.clone()),
        value("store.url", "--store", store.clone()),
        value("cluster.role", "--role", role.clone()),
        value("cluster.label", "--node-label", node_label.clone()),
    ]
}

/// Runs a command on a runtime of its own. What still blocks afterwards (a read of stdin) is left behind.
fn block_on_command<F: Future<Output = anyhow::Result<Exit>>>(command: F) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(command);
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

/// A thread for blocking work that has nothing to do ends after this. It is not told to give back what it allocated and others
/// have freed, such as entries of the log that were read, before it ends.
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Runs a server on a runtime of its own, whose workers give free memory back.
fn serve_command_on<F: Future<Output = anyhow::Result<Exit>>>(allocator: Allocator, server: F) -> anyhow::Result<Exit> {
    let memory = IdleMemory::new(allocator);
    let parking = Arc::clone(&memory);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().on_thread_park(move || parking.parking()).thread_keep_alive(BLOCKING_KEEP_ALIVE);
    let runtime = runtime.build()?;
    runtime.spawn(memory.keep_giving_back());
    let exit = runtime.block_on(server);
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

/// Whoever read our output has read enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Stopped => 3,
            Exit::Cancelled => 130,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_names_a_setting() {
        let line = ["gander", "run", "--model", "a/b", "--policy", "ask", "hi"];
        let mut cli = Cli::parse_from(line);
        let keys: Vec<&str> = command_flag_values(&mut cli.command).iter().map(|value| value.key).collect();
        assert_eq!(keys, ["model.default", "permissions.policy"]);
        let line = ["gander", "serve", "--listen", "127.0.0.1:1", "--open", "a2a,adk"];
        let mut cli = Cli::parse_from([&line[..], &["--dialect", "goosed", "--acp-v2"]].concat());
        let values = command_flag_values(&mut cli.command);
        assert_eq!(values.len(), 4);
        let all = keys.into_iter().chain(values.iter().map(|value| value.key));
        for key in all {
            assert!(gander::config::SETTINGS.iter().any(|setting| setting.key == key), "{key}");
        }
    }
}
