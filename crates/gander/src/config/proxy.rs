//! What `gander proxy adk` works with: flags over the variables that adk2goose had, over its defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use gander_client::{CertificatePin, InvalidPin};
use gander_gateway::protocols::adk::OnLeave;
use gander_http::settings::OpenProtocol;
use gander_runtime::backend::goosed::{GoosedRemote, Protocol};
use gander_services::units::DurationSetting;
use secrecy::SecretString;

use super::agents::is_web_address;
use super::{Config, Environment, RemoteAgent, RemoteKind};

/// The agent's name: it serves every app name.
const AGENT: &str = "goose";

/// A server that is asked to end is gone after this and the time for last answers.
const GRACE: Duration = Duration::from_secs(4);

/// What the command line says; what it does not say is in the environment, or has a default.
#[derive(Clone, Debug, Default)]
pub struct ProxyFlags {
    /// `--goose`, else `GOOSE_BASE_URL`.
    pub goose: Option<String>,
    /// What `--secret-key-file` holds, else `GOOSE_SECRET_KEY`.
    pub secret_key: Option<String>,
    /// `--goose-cert-fingerprint`, else `GOOSED_CERT_FINGERPRINT`.
    pub fingerprint: Option<String>,
    /// `--listen`, else `LISTEN_ADDR`.
    pub listen: Option<String>,
    /// `--working-dir`, else `WORKING_DIR`.
    pub working_dir: Option<String>,
    /// `--timeout`, else `REQUEST_TIMEOUT`.
    pub timeout: Option<String>,
    /// What `--api-key-file` holds, else `PROXY_API_KEY`: what clients have to send.
    pub api_key: Option<String>,
    /// How goose is spoken to; absent: found out.
    pub protocol: Option<Protocol>,
    /// A client that goes leaves its turn going on.
    pub keep_running: bool,
    /// `--goose-sessions`, else `GOOSE_SESSIONS_USER`: the ADK user who sees the sessions that goose has of its own.
    pub goose_sessions: Option<String>,
}

/// Why there is no proxy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// Not an address of the web.
    #[error("the address of goose begins with http:// or https://: {0}")]
    BadUrl(String),
    /// Not an address to listen on.
    #[error("not an address to listen on, such as 127.0.0.1:8080 or :8080: {0}")]
    BadListen(String),
    /// Not a time.
    #[error("not a span of time such as 5m: {0}")]
    BadTimeout(String),
    /// Not a folder.
    #[error("not a folder: {0}")]
    BadFolder(String),
    /// Not a fingerprint.
    #[error(transparent)]
    BadPin(#[from] InvalidPin),
    /// Nothing shows a certificate there.
    #[error("a certificate is pinned, so the address of goose begins with https://: {0}")]
    PlainPin(String),
    /// Strangers could use goose.
    #[error("anybody could use goose from the network: set PROXY_API_KEY (or --api-key-file) to listen on {0}")]
    NoKey(SocketAddr),
    /// Everybody on the machine can read it.
    #[error("a key on the command line can be read by every user of this machine: set {variable}, or use {flag}-file")]
    KeyInArguments {
        /// The flag that holds it.
        flag: &'static str,
        /// What to use instead.
        variable: &'static str,
    },
    /// There is no key in it.
    #[error("cannot read a key from the file, {reason}: {path}")]
    BadKeyFile {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Turns the settings of a server into those of a proxy.
pub fn with_proxy_flags(
    mut config: Config,
    flags: ProxyFlags,
    environment: &Environment,
) -> Result<Config, ProxyError> {
    let said = |flag: Option<String>, variable: &str| flag.or_else(|| environment.get(variable).map(str::to_owned));
    let url = said(flags.goose, "GOOSE_BASE_URL").unwrap_or_else(|| "http://127.0.0.1:3000".to_owned());
    if !is_web_address(&url) {
        return Err(ProxyError::BadUrl(url));
    }
    let listen = parse_proxy_listen_address(&said(flags.listen, "LISTEN_ADDR").unwrap_or_else(|| ":8080".to_owned()))?;
    let api_key = said(flags.api_key, "PROXY_API_KEY");
    if api_key.is_none() && !listen.ip().is_loopback() {
        return Err(ProxyError::NoKey(listen));
    }
    let pin = said(flags.fingerprint, "GOOSED_CERT_FINGERPRINT");
    let pin = pin.map(|text| text.parse::<CertificatePin>()).transpose()?;
    if pin.is_some() && !url.starts_with("https://") {
        return Err(ProxyError::PlainPin(url));
    }
    let mut remote = GoosedRemote::new(url);
    remote.starts_when_prepared = true;
    remote.pin = pin;
    remote.key = said(flags.secret_key, "GOOSE_SECRET_KEY").map(SecretString::from);
    remote.folder =
        Some(absolute_proxy_folder(&said(flags.working_dir, "WORKING_DIR").unwrap_or_else(|| ".".to_owned()))?);
    remote.timeout = parse_proxy_duration(&said(flags.timeout, "REQUEST_TIMEOUT").unwrap_or_else(|| "5m".to_owned()))?;
    remote.protocol = flags.protocol;
    config.native = false;
    config.grace = GRACE;
    config.agents = vec![RemoteAgent {
        name: AGENT.to_owned(),
        title: None,
        description: None,
        secrets: remote.key.iter().cloned().collect(),
        kind: RemoteKind::Goosed(remote),
        fingerprint: 0,
    }];
    config.sections.server.listen = listen;
    config.sections.server.open = if api_key.is_none() { vec![OpenProtocol::Adk] } else { Vec::new() };
    // Whoever reaches goose through this address is asked what goose asks: there is nobody else to answer.
    config.sections.server.open_approve = !config.sections.server.open.is_empty();
    config.sections.adk.on_leave = if flags.keep_running { OnLeave::Continue } else { OnLeave::Cancel };
    config.sections.adk.like_adk2goose = true;
    config.sections.adk.goose_sessions = said(flags.goose_sessions, "GOOSE_SESSIONS_USER");
    config.secret = api_key.map(SecretString::from);
    Ok(config)
}

/// The address of the goose behind a proxy.
pub fn proxied_goose(config: &Config) -> &str {
    match config.agents.first().map(|agent| &agent.kind) {
        Some(RemoteKind::Goosed(remote)) => &remote.url,
        Some(RemoteKind::Acp(_) | RemoteKind::A2a(_) | RemoteKind::AcpRest(_) | RemoteKind::Adk(_)) | None => "",
    }
}

/// A port alone is one of this machine: who wants the network says so.
fn parse_proxy_listen_address(text: &str) -> Result<SocketAddr, ProxyError> {
    let bad = || ProxyError::BadListen(text.to_owned());
    match text.strip_prefix(':') {
        Some(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().map_err(|_| bad())?)),
        None => text.replacen("localhost:", "127.0.0.1:", 1).parse().map_err(|_| bad()),
    }
}

/// Goose wants to know a folder from its root.
fn absolute_proxy_folder(text: &str) -> Result<String, ProxyError> {
    let bad = || ProxyError::BadFolder(text.to_owned());
    let path = PathBuf::from(text);
    if path.is_absolute() {
        return Ok(text.to_owned()); // it may be on another machine
    }
    let path = path.canonicalize().map_err(|_| bad())?;
    path.is_dir().then(|| path.to_str().map(str::to_owned)).flatten().ok_or_else(bad)
}

/// `5m`, or several such as `1m30s`, which Go's programs write.
fn parse_proxy_duration(text: &str) -> Result<Duration, ProxyError> {
    let bad = || ProxyError::BadTimeout(text.to_owned());
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
        let letters = rest[digits..].find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let (piece, next) = rest.split_at(digits + letters);
        total += piece.parse::<DurationSetting>().map_err(|_| bad())?.0;
        rest = next;
    }
    if total.is_zero() { Err(bad()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::Flags;

    fn load(flags: ProxyFlags, variables: &[(&str, &str)]) -> Result<Config, ProxyError> {
        let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment::from_pairs(pairs.chain([("HOME".to_owned(), "/nowhere".to_owned())]));
        with_proxy_flags(Config::load(&Flags::default(), &environment).unwrap(), flags, &environment)
    }

    fn remote(config: &Config) -> &GoosedRemote {
        let RemoteKind::Goosed(remote) = &config.agents[0].kind else { panic!("it is a goosed") };
        remote
    }

    #[test]
    fn defaults_are_those_of_adk2goose_on_this_machine_alone() {
        let config = load(ProxyFlags::default(), &[]).unwrap();
        assert_eq!(proxied_goose(&config), "http://127.0.0.1:3000");
        assert_eq!(config.sections.server.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(remote(&config).timeout, Duration::from_secs(300));
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(remote(&config).folder.as_deref(), here.to_str());
        assert_eq!((config.native, config.sections.server.open), (false, vec![OpenProtocol::Adk]));
    }

    #[test]
    fn flags_win_over_variables() {
        let variables = [
            ("GOOSE_BASE_URL", "http://10.0.0.1:3000"),
            ("GOOSE_SECRET_KEY", "hush"),
            ("LISTEN_ADDR", "127.0.0.1:9000"),
            ("WORKING_DIR", "/srv"),
            ("REQUEST_TIMEOUT", "1m30s"),
        ];
        let config = load(ProxyFlags::default(), &variables).unwrap();
        assert_eq!((proxied_goose(&config), remote(&config).timeout.as_secs()), ("http://10.0.0.1:3000", 90));
        assert_eq!(remote(&config).folder.as_deref(), Some("/srv"));
        assert!(remote(&config).key.is_some());
        let flags = ProxyFlags { goose: Some("http://b".into()), listen: Some(":1".into()), ..ProxyFlags::default() };
        let config = load(flags, &variables).unwrap();
        assert_eq!((proxied_goose(&config), config.sections.server.listen.port()), ("http://b", 1));
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        let error = |flags| load(flags, &[]).unwrap_err();
        let flags = ProxyFlags::default;
        assert_eq!(error(ProxyFlags { goose: Some("x".into()), ..flags() }), ProxyError::BadUrl("x".into()));
        assert_eq!(error(ProxyFlags { listen: Some("x".into()), ..flags() }), ProxyError::BadListen("x".into()));
        assert_eq!(error(ProxyFlags { timeout: Some("x".into()), ..flags() }), ProxyError::BadTimeout("x".into()));
        assert_eq!(error(ProxyFlags { timeout: Some("0s".into()), ..flags() }), ProxyError::BadTimeout("0s".into()));
        let pin = |goose: &str, text: &str| {
            error(ProxyFlags { goose: Some(goose.into()), fingerprint: Some(text.into()), ..flags() })
        };
        assert!(matches!(pin("https://a", "x"), ProxyError::BadPin(_)));
        let fingerprint = CertificatePin::of_certificate(b"").to_string();
        assert_eq!(pin("http://a", &fingerprint), ProxyError::PlainPin("http://a".into()));
        let open = ProxyFlags { listen: Some("0.0.0.0:8080".into()), ..flags() };
        assert_eq!(error(open.clone()), ProxyError::NoKey("0.0.0.0:8080".parse().unwrap()));
        let keyed = load(ProxyFlags { api_key: Some("k".into()), ..open }, &[]).unwrap();
        assert!(keyed.sections.server.open.is_empty(), "who has a key must send it");
    }
}
