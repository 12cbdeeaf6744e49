//! Serving an agent: on the command line's word, on given streams, or over HTTP.
//!
//! [`Agent::serve`] is for the `main` of a program that is an agent and nothing else. It reads the command line:
//!
//! ```text
//! echo acp                    speak ACP on stdin and stdout, as editors start it
//! echo serve                  listen for every protocol on 127.0.0.1:4747
//! echo serve --listen 127.0.0.1:8000 --open a2a
//! echo token                  print the token that callers of `serve` present
//! ```
//!
//! All of them are one server: whoever comes first takes the data directory, the others are passed on to it. So an editor
//! and an A2A client see the same sessions.
//!
//! A program with a command line of its own calls [`Agent::serve_stdio`], [`Agent::serve_http`] or [`Agent::serve_on`]:
//!
//! ```
//! use gander::{Agent, AgentInfo, PromptRequest, PromptResult, StopReason, UpdateSink};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
//!     sink.text(request.text()).await?;
//!     Ok(StopReason::EndTurn)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let agent = Agent::new(AgentInfo::new("echo", "1.0.0")).data_directory(folder.path()).on_prompt(answer);
//! let (client, server) = tokio::io::duplex(64 * 1024);
//! let (reader, writer) = tokio::io::split(server);
//! let served = tokio::spawn(agent.serve_on(reader, writer));
//!
//! let (reader, mut writer) = tokio::io::split(client);
//! writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n").await?;
//! let mut lines = BufReader::new(reader).lines();
//! let hello = lines.next_line().await?.unwrap_or_default();
//! assert!(hello.contains("\"name\":\"echo\""), "{hello}");
//! drop((lines, writer)); // the client leaves
//! served.await??;
//! # Ok(())
//! # }
//! ```

mod command_line;
mod relay;

use std::fmt;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_services::paths;
use gander_services::token::{TokenError, owner_token};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncWrite};

use self::command_line::{CommandLine, ServeOptions, Verb};
use crate::agent::Agent;
use crate::app::{App, AppBuilder};
use crate::config::{Config, ConfigError, Environment, FlagValue, Flags, named_data_directory};
use crate::daemon::{AttachError, Server, ServerError, Signals, Start};

/// The settings file of an agent, in its data directory.
const SETTINGS_FILE: &str = "gander.toml";

/// What a settings file holds that nobody wrote yet.
const EMPTY_SETTINGS: &[u8] =
    b"# Settings of this agent's server, such as server.listen. They count when they are saved.\n";

/// Why an agent is not served.
#[derive(thiserror::Error)]
pub enum ServeError {
    /// The command line is wrong, or asks for help: this is what to print.
    #[error("{0}")]
    Usage(String),
    /// It would be part of addresses.
    #[error("an agent's name has 1 to 63 lower-case letters, digits, - and _, and begins with no sign: {0:?}")]
    Name(String),
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server that has the data directory.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Streams, signals or files.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What `main` prints of an error that it returns is its `Debug`: so that says what there is to say.
impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Agent {
    /// Does what the command line of this process says: `acp`, `serve` or `token`. See the [module](self).
    pub async fn serve(self) -> Result<(), ServeError> {
        let CommandLine { verb, options } = match CommandLine::parse(std::env::args().skip(1), self.name()) {
            Ok(parsed) => parsed,
            Err(command_line::RequestedCommand::Help(text)) => return Ok(writeln!(io::stdout(), "{text}")?),
            Err(command_line::RequestedCommand::Version) => {
                return Ok(writeln!(io::stdout(), "{} {}", self.name(), self.version())?);
            }
            Err(command_line::RequestedCommand::Wrong(text)) => return Err(ServeError::Usage(text)),
        };
        match verb {
            Verb::Acp => self.serve_stdio_with(&options).await,
            Verb::Serve => self.serve_http_with(&options).await,
            Verb::Token => {
                let config = self.load_config(&options)?;
                config.paths.create_folders().map_err(ServerError::from)?;
                Ok(writeln!(io::stdout(), "{}", owner_token(&config.paths)?.expose_secret())?)
            }
        }
    }

    /// Speaks ACP on stdin and stdout until stdin ends. What the handler prints goes to stderr: stdout is the protocol's.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        self.serve_stdio_with(&ServeOptions::default()).await
    }

    /// Serves one client that speaks ACP over these streams, one message a line, until the reader ends.
    pub async fn serve_on<R, W>(self, reader: R, writer: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let config = self.load_config(&ServeOptions::default())?;
        self.serve_streams(config, reader, writer).await
    }

    /// Listens at this address for every protocol until the process gets a signal to end.
    pub async fn serve_http(self, address: SocketAddr) -> Result<(), ServeError> {
        self.serve_http_with(&ServeOptions { listen: Some(address.to_string()), ..ServeOptions::default() }).await
    }

    /// The application with this agent alone, to which parts can be added before it starts.
    pub fn into_app(self, config: Config) -> AppBuilder {
        let ids = self.chosen_session_ids();
        App::builder(config).without_native_agent().with_session_ids(ids).with_agent(self)
    }

    async fn serve_stdio_with(self, options: &ServeOptions) -> Result<(), ServeError> {
        let stdout = guard_served_stdout()?;
        let config = self.load_config(options)?;
        self.serve_streams(config, tokio::io::stdin(), tokio::fs::File::from_std(stdout)).await
    }

    async fn serve_streams<R, W>(self, config: Config, reader: R, writer: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let cwd = std::env::current_dir().ok();
        match Server::start(self.into_app(config.clone()), Start::Background).await {
            Ok(server) => {
                let peer = ClientPeer { cwd, ..ClientPeer::new(Caller::local_owner()) };
                server.app().serve_acp(reader, writer, peer).await;
                server.end_when_deserted().await;
                Ok(())
            }
            Err(ServerError::Taken(_)) => relay::relay_client(&config.paths, cwd, reader, writer).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn serve_http_with(self, options: &ServeOptions) -> Result<(), ServeError> {
        // Before anything is opened, so that no signal ends the process half-way.
        let signals = Signals::listen()?;
        let config = self.load_config(options)?;
        let (address, name) = (config.sections.server.listen, format!("{} {}", self.name(), self.version()));
        match Server::start(self.into_app(config.clone()), Start::Foreground(address)).await {
            Ok(server) => {
                announce_served_addresses(&name, &server.listens(), &config)?;
                server.run(signals).await;
                Ok(())
            }
            Err(ServerError::Taken(_)) => {
                let listener = relay::ask_relay_to_listen(&config, address).await?;
                announce_served_addresses(&name, &listener.welcome.listens, &config)?;
                relay::hold_relay_listener(listener, signals).await;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Settings of this agent: those of its data directory, the environment and these options.
    fn load_config(&self, options: &ServeOptions) -> Result<Config, ServeError> {
        if !is_served_agent_name(self.name()) {
            return Err(ServeError::Name(self.name().to_owned()));
        }
        let environment = Environment::of_process();
        let chosen = options.data.clone().or_else(|| self.chosen_data_directory().cloned());
        let data = match chosen {
            Some(data) => std::path::absolute(data)?,
            None => named_data_directory(&environment, self.name())?,
        };
        let file = match &options.config {
            Some(file) => file.clone(),
            None => create_served_settings_file(data.clone())?,
        };
        let value = |key, flag, text: &Option<String>| text.clone().map(|text| FlagValue { key, flag, text });
        let values =
            [value("server.listen", "--listen", &options.listen), value("server.open", "--open", &options.open)];
        let flags = Flags { config: Some(file), data: Some(data), values: values.into_iter().flatten().collect() };
        Ok(Config::load(&flags, &environment)?)
    }
}

/// On stdout where it listens, for whoever started this; on stderr what a person needs to know.
fn announce_served_addresses(name: &str, addresses: &[SocketAddr], config: &Config) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for address in addresses {
        writeln!(stdout, "{name} listening on http://{address}")?;
    }
    stdout.flush()?;
    writeln!(io::stderr(), "callers need the token in {}", config.paths.token_file().display())
}

/// `[a-z0-9][a-z0-9_-]{0,62}`.
fn is_served_agent_name(name: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=63).contains(&bytes.len())
        && plain(bytes[0])
        && bytes.iter().all(|letter| plain(*letter) || matches!(letter, b'-' | b'_'))
}

/// An agent has its settings in its own folder: those of the product are another program's.
fn create_served_settings_file(data: PathBuf) -> io::Result<PathBuf> {
    let file = data.join(SETTINGS_FILE);
    if !file.exists() {
        std::fs::create_dir_all(&data)?;
        match paths::create_private_file(&file, EMPTY_SETTINGS) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(file)
}

/// Keeps stdout for the protocol: whatever else prints by mistake goes to stderr.
fn guard_served_stdout() -> io::Result<std::fs::File> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(std::fs::File::from(stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_break_an_address_is_none() {
        for name in ["echo", "a", "my-agent_2", &"x".repeat(63)] {
            assert!(is_served_agent_name(name), "{name}");
        }
        for name in ["", "-x", "Echo", "my agent", "ü", "a/b", &"x".repeat(64)] {
            assert!(!is_served_agent_name(name), "{name}");
        }
    }
}
