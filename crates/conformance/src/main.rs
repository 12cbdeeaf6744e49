//! `gander-conformance serve`: the product's server with agents whose behaviour is known.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gander::app::App;
use gander::config::{Config, Environment, FlagValue, Flags};
use gander::daemon::{Server, Signals, Start};
use tracing_subscriber::EnvFilter;

/// The product's allocator: measurements of these agents are measurements of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The gander server with agents for conformance kits.
#[derive(Debug, Parser)]
#[command(name = "gander-conformance", version)]
struct Cli {
    /// Where sessions, token and socket lie [environment: GANDER_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The settings file [environment: GANDER_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve on HTTP and on a Unix socket until ctrl-c, as `gander serve` does
    Serve {
        /// Where to listen
        #[arg(long, value_name = "ADDR:PORT")]
        listen: Option<String>,
        /// Protocols that need no token on this machine: acp-rest, a2a, adk
        #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',')]
        open: Vec<String>,
        /// At the protocols of --open, also let callers without a token answer questions
        #[arg(long, requires = "open")]
        open_approve: bool,
        /// Serve an installed adk web page from this folder, under /dev-ui/
        #[arg(long, value_name = "FOLDER")]
        adk_ui: Option<String>,
    },
}

fn main() -> anyhow::Result<()> {
    let config = load_conformance_config(Cli::parse())?;
    let filter = EnvFilter::try_new(&config.sections.log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve_conformance_agents(config));
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

fn load_conformance_config(cli: Cli) -> anyhow::Result<Config> {
    let Command::Serve { listen, open, open_approve, adk_ui } = cli.command;
    let value = |key, flag, text: Option<String>| text.map(|text| FlagValue { key, flag, text });
    let values = [
        value("server.listen", "--listen", listen),
        value("server.open", "--open", (!open.is_empty()).then(|| format!("{open:?}"))),
        value("server.open_approve", "--open-approve", open_approve.then(|| "true".to_owned())),
        value("adk.ui", "--adk-ui", adk_ui),
    ];
    let flags = Flags { config: cli.config, data: cli.data, values: values.into_iter().flatten().collect() };
    let config = Config::load(&flags, &Environment::of_process())?;
    Ok(Config { helper: sandbox_helper(), ..config })
}

/// Commands are sandboxed by the product's binary, which cargo puts beside this one.
fn sandbox_helper() -> Option<PathBuf> {
    let product = std::env::current_exe().ok()?.with_file_name("gander");
    product.exists().then_some(product)
}

async fn serve_conformance_agents(config: Config) -> anyhow::Result<()> {
    // Before anything is opened, so that no signal ends the process half-way.
    let signals = Signals::listen()?;
    let address = config.sections.server.listen;
    let app = App::builder(config).with_agents(gander_conformance::agents);
    let server = Server::start(app, Start::Foreground(address)).await?;
    for address in server.listens() {
        // Flushed line by line: whoever started this process waits for it.
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "gander-conformance {} listening on http://{address}", gander::VERSION)?;
        stdout.flush()?;
    }
    server.run(signals).await;
    Ok(())
}
