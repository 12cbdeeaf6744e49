//! Called as `goose`: the command line that goose's clients start, with gander behind it.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, Parser, Subcommand};
use gander::config::{Environment, FlagValue};
use gander_domain::Policy;
use gander_tools::BuiltIn;
use gander_wire::goose::mode;

use super::flags::{Cli, Shared};

/// The version of goose whose surface is served: clients look at it before they start anything.
const VERSION: &str = "1.52.0";

const ABOUT: &str = "\
This is gander, called as goose: it serves goose's clients over ACP and REST.
Everything else is under its own name, see `gander --help`.";

/// What goose's clients say.
#[derive(Debug, Parser)]
#[command(name = "goose", version = VERSION, about = ABOUT, arg_required_else_help = true)]
struct Goose {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: GooseCommand,
}

#[derive(Debug, Subcommand)]
enum GooseCommand {
    /// Speak the Agent Client Protocol on stdin and stdout, for editors
    Acp {
        /// Built-in extensions to have: developer, todo, skills, apps and summon are there anyway
        #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = goose_built_in_name)]
        with_builtin: Vec<String>,
    },
    /// Serve ACP on `/acp` and goose's REST, with X-Secret-Key as GOOSE_SERVER__SECRET_KEY says, or the server's token
    Serve(Listening),
    /// The same under the name that `goosed` had
    #[command(hide = true)]
    Agent(Listening),
}

#[derive(Debug, Args)]
struct Listening {
    /// Where to listen [environment: GOOSE_HOST; default: 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    host: Option<String>,
    /// On which port [environment: GOOSE_PORT; default: 3284, as goosed 3000]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Listen on other than loopback addresses without TLS
    #[arg(long)]
    insecure_plain: bool,
    /// Encrypt with a certificate of our own, whose fingerprint is printed [environment: GOOSE_TLS=true]
    #[arg(long)]
    tls: bool,
    /// Built-in extensions to have: developer, todo, skills, apps and summon are there anyway
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = goose_built_in_name)]
    with_builtin: Vec<String>,
    /// Who calls, `cli` or `desktop`; makes no difference here
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// A built-in extension that every session has. Others are refused: to start without them would look as if they were there.
fn goose_built_in_name(name: &str) -> Result<String, String> {
    match BuiltIn::from_name(name) {
        Some(BuiltIn::Developer | BuiltIn::Todo | BuiltIn::Skills | BuiltIn::Apps | BuiltIn::Summon) => {
            Ok(name.to_owned())
        }
        Some(BuiltIn::Memory) => {
            Err("switch it on for every session with `gander extensions on memory`, and leave it out here".to_owned())
        }
        None => Err("it is not built in; add an MCP server with `gander extensions add`".to_owned()),
    }
}

/// True if the program was started under goose's name, by a link or a copy.
pub(super) fn is_called_goose(program: Option<OsString>) -> bool {
    let stem = program.as_deref().map(Path::new).and_then(Path::file_stem);
    stem.is_some_and(|stem| stem == "goose" || stem == "goosed")
}

/// The same wish in our own words, with the settings that goose's environment adds.
pub(super) fn parse_goose_line(
    line: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<(Cli, Vec<FlagValue>), clap::Error> {
    let Goose { shared, command } = Goose::try_parse_from(line)?;
    let words = match command {
        GooseCommand::Acp { .. } => vec!["gander".to_owned(), "acp".to_owned()],
        GooseCommand::Serve(listening) => listening.words(3284, environment),
        GooseCommand::Agent(listening) => listening.words(3000, environment),
    };
    let cli = Cli { shared, ..Cli::try_parse_from(words)? };
    let policy = environment.get("GOOSE_MODE").and_then(mode::policy_of_goose_mode).map(|policy| FlagValue {
        key: "permissions.policy",
        flag: "GOOSE_MODE",
        text: goose_policy_name(policy).to_owned(),
    });
    Ok((cli, policy.into_iter().collect()))
}

impl Listening {
    /// The same for our own command line.
    fn words(self, usual: u16, environment: &Environment) -> Vec<String> {
        let host = self.host.or_else(|| environment.get("GOOSE_HOST").map(str::to_owned));
        let port = self.port.or_else(|| environment.get("GOOSE_PORT")?.parse().ok());
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
        let listen = format!("{host}:{}", port.unwrap_or(usual));
        let tls = self.tls || environment.get("GOOSE_TLS").is_some_and(|said| ["true", "1"].contains(&said));
        let words = ["gander", "serve", "--listen", &listen].map(str::to_owned);
        let flags = [(self.insecure_plain, "--insecure-plain"), (tls, "--tls-self-signed")];
        let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.to_owned());
        words.into_iter().chain(flags).collect()
    }
}

fn goose_policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::ReadOnly => "read_only",
        Policy::Ask => "ask",
        Policy::AutoEdit => "auto_edit",
        Policy::Auto => "auto",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;

    use super::super::flags::Command;
    use super::*;

    fn said(line: &[&str], variables: &[(&str, &str)]) -> (Command, Vec<String>) {
        let environment = Environment::from_pairs(variables.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let (cli, settings) = parse_goose_line(line.iter().map(OsString::from), &environment).unwrap();
        (cli.command, settings.into_iter().map(|value| format!("{}={}", value.key, value.text)).collect())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Goose::command().debug_assert();
    }

    #[test]
    fn only_the_name_of_the_program_counts() {
        for (program, goose) in
            [("/usr/bin/goose", true), ("goosed", true), ("/goose/gander", false), ("goosey", false)]
        {
            assert_eq!(is_called_goose(Some(program.into())), goose, "{program}");
        }
        assert!(!is_called_goose(None));
    }

    #[test]
    fn goose_acp_is_ours_whatever_is_to_be_switched_on() {
        let (command, settings) =
            said(&["goose", "acp", "--with-builtin", "developer,todo"], &[("GOOSE_MODE", "approve")]);
        assert!(matches!(command, Command::Acp { standalone: false, model: None, .. }), "{command:?}");
        assert_eq!(settings, ["permissions.policy=ask"]);
    }

    #[test]
    fn extensions_that_are_not_there_are_refused() {
        let refused = |name: &str| {
            let line = ["goose", "acp", "--with-builtin", name].map(OsString::from);
            parse_goose_line(line, &Environment::from_pairs([])).unwrap_err().to_string()
        };
        assert!(refused("developer,computercontroller").contains("gander extensions add"));
        assert!(refused("memory").contains("gander extensions on memory"));
    }

    #[test]
    fn where_it_listens() {
        let listens = |line: &[&str], variables: &[(&str, &str)]| {
            let Command::Serve { listen, .. } = said(line, variables).0 else { panic!("{line:?}") };
            listen.unwrap()
        };
        assert_eq!(listens(&["goose", "serve"], &[]), "127.0.0.1:3284");
        assert_eq!(listens(&["goosed", "agent"], &[("GOOSE_PORT", "7")]), "127.0.0.1:7");
        assert_eq!(listens(&["goose", "serve", "--host", "::1", "--port", "9"], &[("GOOSE_PORT", "7")]), "[::1]:9");
    }
}
