//! `gander proxy`: one protocol's front over a server that speaks another.

use std::path::Path;

use super::options::{AdkProxyOptions, ProtocolName, ProxyCommand};
use super::{Context, Exit, serve};
use crate::backend::goosed::Protocol;
use crate::config::{Config, Environment, Origin, ProxyFlags, goose_of, proxied};
use crate::daemon::{Server, Signals, Start};
use crate::output::Tone;
use crate::paths::Paths;

/// The settings of a proxy: those of a server in a folder of its own, with goose behind it.
pub(super) fn configure(
    mut config: Config,
    command: &ProxyCommand,
    environment: &Environment,
) -> anyhow::Result<Config> {
    let ProxyCommand::Adk(options) = command;
    if config.origin("data") == Origin::Default {
        let runtime = environment.get("XDG_RUNTIME_DIR").map(Path::new);
        config.paths = Paths::new(config.paths.data().join("proxy-adk"), runtime);
    }
    let AdkProxyOptions {
        goose,
        secret_key,
        goose_cert_fingerprint,
        listen,
        working_dir,
        timeout,
        api_key,
        protocol,
        keep_running,
    } = options;
    let flags = ProxyFlags {
        goose: goose.clone(),
        secret_key: secret_key.clone(),
        fingerprint: goose_cert_fingerprint.clone(),
        listen: listen.clone(),
        working_dir: working_dir.clone(),
        timeout: timeout.clone(),
        api_key: api_key.clone(),
        protocol: protocol.map(|protocol| match protocol {
            ProtocolName::Rest => Protocol::Rest,
            ProtocolName::Acp => Protocol::Acp,
        }),
        keep_running: *keep_running,
    };
    Ok(proxied(config, flags, environment)?)
}

/// Serves until it is told to end.
pub(super) async fn run(context: Context) -> anyhow::Result<Exit> {
    let Context { config, output } = &context;
    let signals = Signals::listen()?;
    let server = Server::start(config.clone(), Start::Foreground(config.sections.server.listen)).await?;
    let (out, err) = (output.style(), output.error_style());
    if config.secret.is_none() {
        let open = "every program on this machine may use goose through this address, see --api-key";
        output.note(&format!("  {}{}", err.paint(Tone::Dim, "warning "), err.paint(Tone::Warn, open)));
    }
    for address in server.listens() {
        let here = out.paint(Tone::Bold, &format!("http://{address}"));
        let there = goose_of(config);
        output.line(&format!("gander {} proxy: ADK on {here} -> goose at {there}", crate::VERSION))?;
    }
    Ok(serve::after(server.run(signals).await))
}
