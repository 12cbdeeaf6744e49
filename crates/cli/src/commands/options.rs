//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use gander_domain::caller::Scope;
use gander_tools::sandbox::HELPER;

use super::apps::AppsCommand;
use super::cancel::CancelOptions;
use super::chat::options::ChatOptions;
use super::extensions::ExtensionsCommand;
use super::inspect::InspectOptions;
use super::open::OpenOptions;
use super::recipes::RecipesCommand;
use super::run::options::{PolicyName, RunOptions};
use super::schedule::ScheduleCommand;
use super::server::ServerCommand;
use super::sessions::SessionsCommand;
use super::setup::SetupOptions;
use super::watch::WatchOptions;

const EXAMPLES: &str = "\
Examples:
  gander                                     talk to an agent in this folder
  gander run \"what is in this folder?\"       ask once, in the terminal
  gander run --continue \"and in French\"      go on, also in a session from an editor
  gander watch                               follow what waits for your answer
  gander acp                                 what an editor starts (Zed, JetBrains, VS Code, …)
  gander serve                               for everything else: http://127.0.0.1:4747
  gander doctor                              active settings and their sources

One server per data directory: `run` and `acp` attach to it, and start it in the
background if none runs. So closing the editor does not stop a turn.";

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
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Settings file [environment: GANDER_CONFIG; default: ~/.config/gander/gander.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve on HTTP and on a Unix socket until ctrl-c
    #[command(after_help = "\
Examples:
  gander serve
  gander serve --listen 127.0.0.1:9000
  curl -H \"Authorization: Bearer $(gander token)\" http://127.0.0.1:4747/gander/status

Anything but a loopback address needs --tls-self-signed, a proxy with TLS in front,
or --insecure-plain.")]
    Serve {
        /// Where to listen [default: 127.0.0.1:4747]
        #[arg(long, value_name = "ADDR:PORT")]
        listen: Option<String>,
        /// Listen on other than loopback addresses without TLS
        #[arg(long)]
        insecure_plain: bool,
        /// Interfaces that need no token on this machine: acp-rest, a2a, adk
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        open: Vec<String>,
        /// At the interfaces of --open, also let callers without a token answer questions
        #[arg(long, requires = "open")]
        open_approve: bool,
        /// Encrypt with a certificate of our own, and print its fingerprint for goose's clients to pin
        #[arg(long)]
        tls_self_signed: bool,
        /// Serve an installed adk web page from this folder, under /dev-ui/
        #[arg(long, value_name = "FOLDER")]
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
    /// Open the web page, signed in
    #[command(after_help = "\
Examples:
  gander open                                in this machine's browser
  gander open --print                        only print the link, for a browser elsewhere
  gander open --phone                        a QR code for a phone in the same network, over TLS
  gander open --revoke                       sign every browser out

The link works once, for 30 seconds (5 minutes with --phone). The server is started if
none runs, and stays until: gander server stop")]
    Open(OpenOptions),
    /// Speak the Agent Client Protocol on stdin and stdout, for editors
    #[command(after_help = "\
In an editor's settings the command is `gander` with the argument `acp`.
When the editor goes, the turn goes on: another editor, or `gander run --session ID`,
can join it. With --standalone it parks instead, and goes on at the next start.")]
    Acp {
        /// Run everything in this process, without any socket
        #[arg(long)]
        standalone: bool,
        /// Model of new sessions, as provider/model
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// What runs unasked in new sessions, for editors that cannot answer permission requests
        #[arg(long, value_name = "POLICY")]
        policy: Option<PolicyName>,
        #[command(flatten)]
        options: MannerOptions,
    },
    /// Talk to an agent in the terminal: what `gander` alone opens
    #[command(after_help = "\
Examples:
  gander chat                                a new session in this folder
  gander chat --continue                     the last session of this folder
  gander chat --session 0199c2f4             any session, also one from an editor or the page
  gander chat --attach http://127.0.0.1:4747
  gander chat --plain                        whole lines only, for screen readers

Enter sends, alt-enter begins a new line, tab completes /commands and @files, /help lists
everything. Questions take a key: y, n, a (always), a number, r (no, with a reason).
ctrl-c cancels the turn, a second one leaves; turns go on without you. The server may be
restarted at any time: the chat finds it again and goes on where it was.")]
    Chat(ChatOptions),
    /// Ask once and print the answer
    #[command(after_help = "\
Examples:
  gander run \"explain src/main.rs\"
  git diff | gander run \"review this\"         stdin is appended to the prompt
  gander run --image shot.png \"what is wrong here?\"
  gander run --session 0199c2f4               follow a turn that runs already
  gander run --continue \"go on\"               the last session of this folder
  gander run --policy auto_edit \"fix the tests\"
  gander run --recipe release.yaml --param version=1.2
  gander run --json \"hi\" | jq -r 'select(.type == \"text\").text'

The answer goes to stdout; thoughts, tools and questions go to stderr.
Questions take y, n, a (always), a number, ? for help, or words that tell the model why not.
ctrl-c cancels, twice it leaves at once; the turn of another client is left running.
Without a terminal nobody can be asked: what needs permission is rejected.

Exit status: 0 done, 1 failed, 2 wrong usage or settings,
3 stopped early (tokens, turns, refusal), 130 cancelled.")]
    Run(RunOptions),
    /// Follow a session, or everything that waits for an answer
    #[command(after_help = "\
Examples:
  gander watch                               every open question of every session
  gander watch 0199c2f4                      one session, turn after turn

ctrl-c leaves; turns go on.")]
    Watch(WatchOptions),
    /// Show a session's log, and what every protocol says of each entry
    #[command(after_help = "\
Examples:
  gander inspect 0199c2f4                    the whole log as a timeline
  gander inspect --follow 0199c2f4           and what is added to it, as it happens
  gander inspect --protocol acp,a2a 0199c2f4
  gander inspect --full --after 12 0199c2f4  whole messages, from entry 13 on
  gander inspect --json 0199c2f4 | jq -c .entry

Each entry has its number, the time since the first entry and since the one before it.
Below it stands what clients of each protocol are told because of it; nothing, if nothing.")]
    Inspect(InspectOptions),
    /// Stop a turn
    Cancel(CancelOptions),
    /// Set up a model provider: choose it, paste its key, test it
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
    /// List the agents and what they are for
    Agents {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List, show, move and delete sessions
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// List, show and check recipes: sessions that are prepared beforehand
    Recipes {
        #[command(subcommand)]
        command: RecipesCommand,
    },
    /// List, export, import and delete apps: small web pages that agents made
    Apps {
        #[command(subcommand)]
        command: AppsCommand,
    },
    /// Run recipes on a schedule
    #[command(after_help = "\
Examples:
  gander schedule add morning --cron \"0 7 * * 1-5\" --zone Europe/Berlin --recipe news.yaml --param topic=rust
  gander schedule list

Schedules run in the server, which stays in the background while there are any.")]
    Schedule {
        #[command(subcommand)]
        command: ScheduleCommand,
    },
    /// Print the server's token, or manage tokens of others
    Token {
        #[command(subcommand)]
        command: Option<TokenCommand>,
    },
    /// List or revoke what was allowed with "always"
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// Trust a project's .gander settings
    #[command(after_help = "\
Examples:
  gander trust                               this folder, after you have read its .gander
  gander trust --list
  gander trust --revoke ~/code/project

Until then a project's agents, extensions and rules are only text.")]
    Trust(TrustOptions),
    /// Add, remove and show MCP servers
    Extensions {
        #[command(subcommand)]
        command: ExtensionsCommand,
    },
    /// Serve one protocol in front of a server that speaks another
    Proxy {
        #[command(subcommand)]
        command: ProxyCommand,
    },
    /// Write sessions, tokens, secrets, grants and settings to one file, also while the server runs
    Backup {
        /// The file (mode 600: it holds secrets)
        file: PathBuf,
        /// Replace a file of that name
        #[arg(long)]
        force: bool,
    },
    /// Verify a backup and restore it into the data directory (no server may run)
    Restore {
        /// What `gander backup` wrote
        file: PathBuf,
        /// Replace the sessions and settings that are there
        #[arg(long)]
        force: bool,
    },
    /// Show active settings and their sources, and what does not work
    Doctor {
        /// Rebuild indexes (no server may run)
        #[arg(long)]
        rebuild: bool,
    },
    /// Write or find the settings file
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Become a command inside of a fence: how the server starts commands
    #[command(name = HELPER, hide = true)]
    Fence(FenceOptions),
    /// Print a completion script for a shell
    Completions {
        /// For which shell
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

/// How ACP clients are spoken to.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct MannerOptions {
    /// Speak to ACP clients in these words: standard, goosed, aptove or agentkit [default: each client's own]
    #[arg(long, value_name = "NAME")]
    pub(super) dialect: Option<String>,
    /// Speak version 2 of ACP, a draft, with clients that ask for it
    #[arg(long)]
    pub(super) acp_v2: bool,
}

/// Scopes by name, each with its line of help.
fn scopes() -> impl TypedValueParser<Value = Scope> {
    let known = Scope::ALL.map(|scope| PossibleValue::new(scope.name()).help(scope.purpose()));
    PossibleValuesParser::new(known).try_map(|name| Scope::from_name(&name).ok_or("no such scope"))
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Print the owner's token
    Show,
    /// Make a token for somebody else; it is shown this once
    Add {
        /// A name for it
        name: String,
        /// What it may do, beside reading its own sessions
        #[arg(long, value_parser = scopes(), value_delimiter = ',', default_value = "prompt,approve")]
        scopes: Vec<Scope>,
        /// See only this ADK user's sessions
        #[arg(long, value_name = "USER")]
        adk_user: Option<String>,
    },
    /// Names and scopes of the tokens of others
    List,
    /// Take a token back; it stops working at once
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GrantsCommand {
    /// What was allowed with "always", per folder
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Ask again from now on
    Revoke {
        /// Its number, from the list
        id: u64,
    },
}

/// Options of `gander trust`.
#[derive(Debug, Args)]
pub(super) struct TrustOptions {
    /// The folder [default: this one]
    pub(super) folder: Option<PathBuf>,
    /// Show the trusted folders
    #[arg(long, conflicts_with = "folder")]
    pub(super) list: bool,
    /// Take the trust back
    #[arg(long, conflicts_with = "list")]
    pub(super) revoke: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum ProxyCommand {
    /// An ADK server whose agent is a running goose
    #[command(after_help = "\
Examples:
  GOOSE_SECRET_KEY=… gander proxy adk --goose http://127.0.0.1:3000
  curl -X POST http://127.0.0.1:8080/apps/goose/users/me/sessions -d '{}' -H 'content-type: application/json'

Every app name is goose. Which session of goose stands behind which one here is kept
in the data directory, by default a folder of its own beside that of `gander serve`.")]
    Adk(AdkProxyOptions),
}

/// Options of `gander proxy adk`.
#[derive(Debug, Args)]
pub(super) struct AdkProxyOptions {
    /// Where goose is: a goosed, a `goose serve` or another gander [environment: GOOSE_BASE_URL; default: http://127.0.0.1:3000]
    #[arg(long, value_name = "URL")]
    pub(super) goose: Option<String>,
    /// A file with what goose wants as X-Secret-Key; `-` is stdin [environment: GOOSE_SECRET_KEY, the key itself]
    #[arg(long, value_name = "FILE")]
    pub(super) secret_key_file: Option<PathBuf>,
    /// Refused: every user of the machine can read a command line
    #[arg(long, value_name = "KEY", hide = true)]
    pub(super) secret_key: Option<String>,
    /// The one certificate that goose may show, as it prints it when it starts [environment: GOOSED_CERT_FINGERPRINT]
    #[arg(long, value_name = "SHA256")]
    pub(super) goose_cert_fingerprint: Option<String>,
    /// Where to listen; a port alone is on this machine [environment: LISTEN_ADDR; default: :8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) listen: Option<String>,
    /// The folder of goose's sessions [environment: WORKING_DIR; default: .]
    #[arg(long, value_name = "DIR")]
    pub(super) working_dir: Option<String>,
    /// How long goose may be silent [environment: REQUEST_TIMEOUT; default: 5m]
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// A file with what clients have to send, as X-API-Key or as a bearer token; `-` is stdin [environment: PROXY_API_KEY, the key itself; default: nothing]
    #[arg(long, value_name = "FILE")]
    pub(super) api_key_file: Option<PathBuf>,
    /// Refused: every user of the machine can read a command line
    #[arg(long, value_name = "KEY", hide = true)]
    pub(super) api_key: Option<String>,
    /// Encrypt with a certificate of our own, and print its fingerprint
    #[arg(long)]
    pub(super) tls_self_signed: bool,
    /// Listen on other than loopback addresses without TLS
    #[arg(long)]
    pub(super) insecure_plain: bool,
    /// What goose speaks [default: found out]
    #[arg(long, value_enum)]
    pub(super) protocol: Option<ProtocolName>,
    /// A client that disconnects leaves goose working
    #[arg(long)]
    pub(super) keep_running: bool,
}

/// What goose speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProtocolName {
    /// goosed until 1.39, and gander
    Rest,
    /// `goose serve`
    Acp,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Write a settings file that shows every setting at its default
    Init,
    /// Print where the settings file is
    Path,
}
