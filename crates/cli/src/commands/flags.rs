//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use gander_domain::caller::Scope;
use gander_tools::sandbox::HELPER;

use super::agents::AgentsCommand;
use super::apps::AppsCommand;
use super::audit::AuditOptions;
use super::cancel::CancelOptions;
use super::chat::flags::ChatOptions;
use super::cluster::ClusterCommand;
use super::extensions::ExtensionsCommand;
use super::grants::GrantsCommand;
use super::inspect::InspectOptions;
use super::login::LoginOptions;
use super::open::OpenOptions;
use super::proxy_flags::ProxyCommand;
use super::recipes::RecipesCommand;
use super::run::flags::{PolicyName, RunOptions};
use super::schedule::ScheduleCommand;
use super::self_check::SelfCommand;
use super::server::ServerCommand;
use super::sessions::SessionsCommand;
use super::setup::SetupOptions;
use super::shell_completion;
use super::store::StoreArguments;
use super::watch::WatchOptions;

const EXAMPLES: &str = "\
Examples:
  gander                                     talk to an agent in this folder
  gander run \"what is in this folder?\"       ask once, in the terminal
  gander run --continue \"and in French\"      continue the last session of this folder
  gander watch                               answer the questions of all sessions
  gander acp                                 what an editor starts (Zed, VS Code, …)
  gander serve                               HTTP for everything else: http://127.0.0.1:4747
  gander doctor                              active settings and their sources

There is one server per data directory. Commands attach to it, and start it in the
background if none is running, so closing a terminal or an editor does not stop a turn.
Press tab to complete sessions, models and more: source <(gander completions bash)";

/// One agent server that speaks every agent protocol.
#[derive(Debug, Parser)]
#[command(
    name = "gander",
    version,
    about = "One agent server that speaks every agent protocol",
    after_help = EXAMPLES,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub(super) shared: Shared,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(super) struct Shared {
    /// Data directory [environment: GANDER_DATA; default: ~/.local/share/gander]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options", value_hint = ValueHint::DirPath)]
    pub(super) data: Option<PathBuf>,
    /// Settings file [environment: GANDER_CONFIG; default: ~/.config/gander/gander.toml]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Talk to an agent in the terminal (also: `gander` alone)
    #[command(after_help = "\
Examples:
  gander chat                                a new session in this folder
  gander chat --continue                     the last session of this folder
  gander chat --session 0199c2f4             any session, also one from an editor or the page
  gander chat --attach http://127.0.0.1:4747
  gander chat --plain                        whole lines only, for screen readers

Enter sends, alt-enter starts a new line, tab completes /commands and @files, /help lists
everything. Questions take a key: y, n, a (always), a number, r (no, with a reason).
ctrl-c cancels the turn, a second one leaves; leaving does not stop a turn. If the server
restarts, the chat reconnects and continues where it was.")]
    Chat(ChatOptions),
    /// Ask once and print the answer
    #[command(after_help = "\
Examples:
  gander run \"explain src/main.rs\"
  git diff | gander run \"review this\"         stdin is appended to the prompt
  gander run --image shot.png \"what is wrong here?\"
  gander run --session 0199c2f4               follow a turn that is already running
  gander run --continue \"go on\"               in the last session of this folder
  gander run --policy auto_edit \"fix the tests\"
  gander run --recipe release.yaml --param version=1.2
  gander run --json \"hi\" | jq -r 'select(.type == \"text\").text'

The answer goes to stdout; thoughts, tools and questions go to stderr.
Questions take y, n, a (always), a number, ? for help, or words that tell the model why not.
ctrl-c cancels, a second one leaves at once; a turn that another client started keeps running.
Without a terminal nobody can be asked: what needs approval is rejected.

Exit status: 0 done, 1 failed, 2 wrong usage or settings,
3 stopped early (tokens, turns, refusal), 130 cancelled.")]
    Run(RunOptions),
    /// Follow a session, or answer the questions of all sessions
    #[command(after_help = "\
Examples:
  gander watch                               every open question of every session
  gander watch 0199c2f4                      one session, turn after turn

ctrl-c leaves; it does not stop a turn.")]
    Watch(WatchOptions),
    /// Stop a turn
    Cancel(CancelOptions),
    /// List, show, move and delete sessions
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Show a session's log, and what each protocol sends for every entry
    #[command(after_help = "\
Examples:
  gander inspect 0199c2f4                    the whole log as a timeline
  gander inspect --follow 0199c2f4           and what is added to it, as it happens
  gander inspect --replay 4x 0199c2f4        as it happened, four times as fast
  gander inspect --protocol acp,a2a 0199c2f4
  gander inspect --full --after 12 0199c2f4  whole messages, from entry 13 on
  gander inspect --json 0199c2f4 | jq -c .entry

Each entry has a number, the time since the first entry, and the time since the one before.
Below it is what clients of each protocol receive because of it, if anything, and the commits
that the running server made of it.")]
    Inspect(InspectOptions),
    /// Set up a model provider: choose one, paste its key, test it
    Setup(SetupOptions),
    /// List the models that can be chosen
    Models {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List the modes that can be chosen in this folder
    Modes {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List the agents, put others behind every protocol, try and choose them
    Agents {
        #[command(subcommand)]
        command: Option<AgentsCommand>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Open the web page, signed in
    #[command(after_help = "\
Examples:
  gander open                                in this machine's browser
  gander open --print                        only print the link, for a browser elsewhere
  gander open --phone                        a QR code for a phone in the same network, over TLS
  gander open --revoke                       sign every browser out

The link works once, within 30 seconds (5 minutes with --phone). The server is started
if none is running, and stays until: gander server stop")]
    Open(OpenOptions),
    /// Speak the Agent Client Protocol on stdin and stdout, for editors
    #[command(after_help = "\
In an editor's settings the command is `gander` with the argument `acp`.
When the editor is closed, the turn continues: another editor, or `gander run --session ID`,
can attach to it. With --standalone the turn pauses instead, and resumes at the next start.")]
    Acp {
        /// With `setup`, ask for a provider and its key as `gander setup` does: editors start this in a terminal
        #[arg(value_parser = ["setup"], hide_possible_values = true)]
        setup: Option<String>,
        /// Run everything in this process, without a background server
        #[arg(long)]
        standalone: bool,
        /// Model of new sessions, as provider/model
        #[arg(long, value_name = "MODEL", add = shell_completion::complete_models())]
        model: Option<String>,
        /// What runs without approval in new sessions, for editors that cannot answer permission requests
        #[arg(long, value_name = "POLICY")]
        policy: Option<PolicyName>,
        #[command(flatten)]
        options: MannerOptions,
    },
    /// Serve on HTTP and on a Unix socket until ctrl-c
    #[command(after_help = "\
Examples:
  gander serve
  gander serve --listen 127.0.0.1:9000
  curl -H \"Authorization: Bearer $(gander token)\" http://127.0.0.1:4747/gander/status

Addresses other than loopback need --tls-self-signed, or a TLS proxy in front and
--insecure-plain.")]
    Serve {
        /// Where to listen [default: 127.0.0.1:4747]
        #[arg(long, value_name = "ADDR:PORT")]
        listen: Option<String>,
        /// Allow addresses other than loopback without TLS
        #[arg(long)]
        insecure_plain: bool,
        /// Interfaces that need no token on this machine: acp-rest, a2a, adk
        #[arg(long, value_name = "NAMES", value_delimiter = ',', add = shell_completion::complete_words(&["acp-rest", "a2a", "adk"]))]
        open: Vec<String>,
        /// Also let callers without a token answer questions, at the interfaces of --open
        #[arg(long, requires = "open")]
        open_approve: bool,
        /// Use TLS with a self-signed certificate, and print its fingerprint for clients to pin
        #[arg(long)]
        tls_self_signed: bool,
        /// Keep sessions in this PostgreSQL database instead of a file [environment: GANDER_STORE]
        #[arg(long, value_name = "URL")]
        store: Option<String>,
        /// What this server does among others on that database: all, gateway (runs no turns) or worker (serves no clients)
        #[arg(long, value_name = "ROLE", add = shell_completion::complete_words(&["all", "gateway", "worker"]))]
        role: Option<String>,
        /// Names this server's local disks: sessions on them stay with servers of the same label [default: machine name]
        #[arg(long, value_name = "LABEL")]
        node_label: Option<String>,
        /// Serve an installed ADK web page from this folder, under /dev-ui/
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        adk_ui: Option<String>,
        #[command(flatten)]
        options: MannerOptions,
        /// Started by a client, on the Unix socket alone
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Show, stop or restart the server of the data directory, or read its log
    Server {
        #[command(subcommand)]
        command: ServerCommand,
    },
    /// Show the servers that share a PostgreSQL database
    Cluster {
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Add, list and remove MCP servers and built-in tools
    Extensions {
        #[command(subcommand)]
        command: ExtensionsCommand,
    },
    /// List, show, check and save recipes: prepared prompts with parameters
    Recipes {
        #[command(subcommand)]
        command: RecipesCommand,
    },
    /// Run recipes on a schedule
    #[command(after_help = "\
Examples:
  gander schedule add morning --cron \"0 7 * * 1-5\" --recipe news.yaml
  gander schedule add noon --cron \"0 12 * * *\" --zone Europe/Berlin --recipe menu.yaml
  gander schedule list

Schedules run in the server, which stays in the background as long as there is one.")]
    Schedule {
        #[command(subcommand)]
        command: ScheduleCommand,
    },
    /// List, export, import and delete apps: small web pages made by agents
    Apps {
        #[command(subcommand)]
        command: AppsCommand,
    },
    /// Who asked for what, who allowed it, what ran and how it ended
    Audit(AuditOptions),
    /// List or revoke what was allowed with "always"
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// Trust a project's .gander settings
    #[command(after_help = "\
Examples:
  gander trust                               this folder, after reading what is in its .gander
  gander trust --list
  gander trust --revoke ~/code/project

A project's agents, extensions and rules are ignored until its folder is trusted.")]
    Trust(TrustOptions),
    /// Print the owner's token, or manage tokens for others
    Token {
        #[command(subcommand)]
        command: Option<TokenCommand>,
    },
    /// Log in to a server elsewhere, at its identity provider
    #[command(after_help = "\
A code is shown that you enter on any device with a browser. The login is kept for you only,
refreshed as long as the identity provider allows, and used by: gander chat --attach URL")]
    Login(LoginOptions),
    /// Forget the login at a server
    Logout {
        /// Address of the server
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Translate between protocols in front of another server
    Proxy {
        #[command(subcommand)]
        command: ProxyCommand,
    },
    /// Show active settings and their sources, and find problems
    Doctor {
        /// Rebuild indexes (no server may run)
        #[arg(long)]
        rebuild: bool,
    },
    /// Create or locate the settings file
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Write sessions, tokens, secrets, grants and settings to one file, also while the server runs
    Backup {
        /// The file to write (mode 600: it holds secrets)
        file: PathBuf,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Move sessions between SQLite and PostgreSQL
    Store(StoreArguments),
    /// Verify a backup and restore it into the data directory (no server may run)
    Restore {
        /// A file written by `gander backup`
        file: PathBuf,
        /// Replace existing sessions and settings
        #[arg(long)]
        force: bool,
    },
    /// Check the installed program
    #[command(name = "self")]
    Installation {
        #[command(subcommand)]
        command: SelfCommand,
    },
    /// Write manual pages into a folder: how packages get them
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// Run a command in the sandbox: how the server starts commands
    #[command(name = HELPER, hide = true)]
    Fence(FenceOptions),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  source <(gander completions bash)                                in ~/.bashrc
  source <(gander completions zsh)                                 in ~/.zshrc, after compinit
  gander completions fish > ~/.config/fish/completions/gander.fish

It completes commands and options, and sessions, models, modes, extensions, recipes,
schedules and tokens as the server knows them.")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Options of the helper.
#[derive(Debug, Args)]
pub(super) struct FenceOptions {
    /// What the fence is like, as JSON
    #[arg(default_value = "")]
    pub(super) plan: String,
    /// Put up no fence: end everything that the command leaves behind
    #[arg(long)]
    pub(super) supervise: bool,
    /// Say what holds inside: this file must not be seen there
    #[arg(long, value_name = "FILE")]
    pub(super) probe: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true)]
    pub(super) command: Vec<OsString>,
}

/// How ACP clients are served.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MannerOptions {
    /// ACP dialect for every client: standard, goosed, aptove or agentkit [default: detected per client]
    #[arg(long, value_name = "NAME", add = shell_completion::complete_words(&["standard", "goosed", "aptove", "agentkit"]))]
    pub(super) dialect: Option<String>,
    /// Offer draft version 2 of ACP to clients that ask for it
    #[arg(long)]
    pub(super) acp_v2: bool,
}

/// Scopes by name, each with its line of help.
fn token_scopes() -> impl TypedValueParser<Value = Scope> {
    let known = Scope::ALL.map(|scope| PossibleValue::new(scope.name()).help(scope.purpose()));
    PossibleValuesParser::new(known).try_map(|name| Scope::from_name(&name).ok_or("no such scope"))
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Print the owner's token
    Show,
    /// Create a token for somebody else; it is shown only once
    Add {
        /// Name of the token
        name: String,
        /// What it may do, besides reading its own sessions
        #[arg(long, value_parser = token_scopes(), value_delimiter = ',', default_value = "prompt,approve")]
        scopes: Vec<Scope>,
        /// Limit it to the sessions of this ADK user
        #[arg(long, value_name = "USER")]
        adk_user: Option<String>,
    },
    /// List tokens with their scopes
    List,
    /// Revoke a token; it stops working at once
    Revoke {
        /// Name of the token
        #[arg(add = shell_completion::complete_tokens())]
        name: String,
    },
}

/// Options of `gander trust`.
#[derive(Debug, Args)]
pub(super) struct TrustOptions {
    /// The folder [default: this one]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) folder: Option<PathBuf>,
    /// List trusted folders
    #[arg(long, conflicts_with = "folder")]
    pub(super) list: bool,
    /// Stop trusting the folder
    #[arg(long, conflicts_with = "list")]
    pub(super) revoke: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Write a settings file that shows every setting at its default
    Init,
    /// Print the path of the settings file
    Path,
}
