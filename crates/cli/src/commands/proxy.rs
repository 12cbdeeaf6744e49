//! `gander proxy`: one protocol's front over a server that speaks another.

use std::path::Path;

use gander::config::{Config, Environment, Origin, ProxyError, ProxyFlags, proxied_goose, with_proxy_flags};
use gander::daemon::{Server, Signals, Start};
use gander_runtime::backend::goosed::Protocol;
use gander_services::paths::Paths;

use super::proxy_flags::{AdkProxyOptions, ProtocolName, ProxyCommand};
use super::serve;
use crate::commands::{Context, Exit};
use crate::output::Tone;

/// The settings of a proxy: those of a server in a folder of its own, with goose behind it.
pub(super) fn configure_proxy(
    mut config: Config,
    command: &ProxyCommand,
    environment: &Environment,
) -> anyhow::Result<Config> {
    let ProxyCommand::Adk(options) = command;
    if config.origin("data") == Origin::Default {
        let runtime = environment.get("XDG_RUNTIME_DIR").map(Path::new);
        config.paths = Paths::new(config.paths.data_directory().join("proxy-adk"), runtime);
    }
    refuse_proxy_keys(options)?;
    let AdkProxyOptions {
        goose,
        secret_key_file,
        secret_key: _,
        goose_cert_fingerprint,
        listen,
        working_dir,
        timeout,
        api_key_file,
        api_key: _,
        tls_self_signed,
        insecure_plain,
        protocol,
        keep_running,
        goose_sessions,
    } = options;
    (config.tls, config.insecure_plain) = (*tls_self_signed, *insecure_plain);
    let flags = ProxyFlags {
        goose: goose.clone(),
        secret_key: secret_key_file.as_deref().map(proxy_key_from).transpose()?,
        fingerprint: goose_cert_fingerprint.clone(),
        listen: listen.clone(),
        working_dir: working_dir.clone(),
        timeout: timeout.clone(),
        api_key: api_key_file.as_deref().map(proxy_key_from).transpose()?,
        protocol: protocol.map(|protocol| match protocol {
            ProtocolName::Rest => Protocol::Rest,
            ProtocolName::Acp => Protocol::Acp,
        }),
        keep_running: *keep_running,
        goose_sessions: goose_sessions.clone(),
    };
    Ok(with_proxy_flags(config, flags, environment)?)
}

/// Serves until it is told to end.
pub(super) async fn run(context: Context) -> anyhow::Result<Exit> {
    let Context { config, output } = &context;
    let signals = Signals::listen()?;
    let server = match Server::start(config.clone(), Start::Foreground(config.sections.server.listen)).await {
        Ok(server) => server,
        Err(error) => return serve::serve_refused(&context, error),
    };
    let (out, err) = (output.style(), output.error_style());
    if config.secret.is_none() {
        let open = "every program on this machine may prompt goose and approve what it asks through this address (--open adk \
                    --open-approve), see --api-key-file";
        output.note(&format!("  {}{}", err.paint(Tone::Dim, "warning "), err.paint(Tone::Warn, open)));
    }
    let scheme = if let Some(fingerprint) = server.fingerprint() {
        output.line(&format!("GOOSED_CERT_FINGERPRINT={fingerprint}"))?;
        "https"
    } else {
        "http"
    };
    for address in server.listens() {
        let here = out.paint(Tone::Bold, &format!("{scheme}://{address}"));
        let there = proxied_goose(config);
        output.line(&format!("gander {} proxy: ADK on {here} -> goose at {there}", gander::VERSION))?;
    }
    Ok(serve::exit_after_serving(server.run(signals).await))
}

/// A key on the command line is readable by every user of the machine, and stays in the shell's history.
fn refuse_proxy_keys(options: &AdkProxyOptions) -> Result<(), ProxyError> {
    let given =
        [(&options.secret_key, "--secret-key", "GOOSE_SECRET_KEY"), (&options.api_key, "--api-key", "PROXY_API_KEY")];
    match given.into_iter().find(|(key, ..)| key.is_some()) {
        Some((_, flag, variable)) => Err(ProxyError::KeyInArguments { flag, variable }),
        None => Ok(()),
    }
}

/// The first line of a file, or of stdin.
fn proxy_key_from(path: &Path) -> Result<String, ProxyError> {
    let bad = |reason: String| ProxyError::BadKeyFile { path: path.to_owned(), reason };
    let text = match path.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        Some(_) | None => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| bad(error.to_string()))?;
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() { Err(bad("it is empty".to_owned())) } else { Ok(key.to_owned()) }
}
