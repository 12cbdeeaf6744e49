//! `gander login` and `gander logout`: the login at a server elsewhere, by the device flow of its identity provider.

use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, bail};
use clap::Args;
use gander_client::{CertificatePin, Endpoint, LinkError};
use gander_services::oidc::{DeviceLogin, ServerLogin, StoredLogins};
use serde_json::Value;

use super::chat::is_local_host;
use crate::commands::{Context, Exit, UsageError};
use crate::output::clean_output_text;

/// Where a server says which identity provider's tokens it takes (RFC 9728).
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Options of `gander login`.
#[derive(Debug, Args)]
pub(super) struct LoginOptions {
    /// Address of the server, such as https://agents.example.com
    #[arg(value_name = "URL")]
    url: String,
    /// Fingerprint of its certificate, as `gander serve --tls-self-signed` prints it
    #[arg(long, value_name = "SHA256")]
    fingerprint: Option<String>,
    /// What the server's tokens are made out to, if that is not its address
    #[arg(long, value_name = "NAME")]
    audience: Option<String>,
}

pub(super) async fn run_login(context: Context, options: LoginOptions) -> anyhow::Result<Exit> {
    let login = find_server_login(&options).await?;
    let output = context.output;
    let (issuer, audience) = (clean_output_text(&login.issuer), clean_output_text(&login.audience));
    if !may_send_login(&context, &options, &login)? {
        bail!("{} asks for a token made out to {audience}; if that is right: --audience {audience}", options.url);
    }
    output.note(&format!("Logging in at {issuer} for {audience}."));
    let device = DeviceLogin::start(login).await?;
    output.line(&format!("Open {}", clean_output_text(&device.verification_uri)))?;
    output.line(&format!("and enter the code {}", clean_output_text(&device.user_code)))?;
    if let Some(complete) = &device.verification_uri_complete {
        output.line(&format!("or open {}", clean_output_text(complete)))?;
    }
    let tokens = tokio::select! {
        tokens = device.wait() => tokens?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            return Ok(Exit::Cancelled);
        }
    };
    context.config.paths.create_folders()?;
    let logins = StoredLogins::open(&context.config.paths).context("cannot read the stored logins")?;
    logins.put(&options.url, &tokens).context("cannot keep the login")?;
    output.note(&format!("Logged in. Try: gander chat --attach {}", options.url));
    Ok(Exit::Done)
}

/// A server could name the audience of another one at the same issuer, and would then be sent a token that counts there:
/// a person, or the one who wrote the command, says that it is this server's.
fn may_send_login(context: &Context, options: &LoginOptions, login: &ServerLogin) -> anyhow::Result<bool> {
    if let Some(audience) = &options.audience {
        return Ok(*audience == login.audience);
    }
    if login.is_made_out_to(&options.url) {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || !context.output.error_style().is_terminal() {
        return Ok(false);
    }
    let (server, audience) = (clean_output_text(&options.url), clean_output_text(&login.audience));
    context
        .output
        .note(&format!("{server} will be sent a token made out to {audience}. Is that the same server? [y/n]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

pub(super) fn run_logout(context: &Context, url: &str) -> anyhow::Result<Exit> {
    let logins = StoredLogins::open(&context.config.paths).context("cannot read the stored logins")?;
    match logins.remove(url).context("cannot write the stored logins")? {
        true => context.output.note("Logged out. The identity provider may still know the session."),
        false => bail!("nobody is logged in there: {url}"),
    }
    Ok(Exit::Done)
}

/// How the server wants its clients to log in.
async fn find_server_login(options: &LoginOptions) -> anyhow::Result<ServerLogin> {
    let url = &options.url;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(UsageError(format!("login takes an address such as https://agents.example.com, not: {url}")).into());
    };
    let host = rest.split('/').next().unwrap_or_default();
    // Whoever changes the answer on its way sends the person to an identity provider of their own.
    if scheme != "https" && !(scheme == "http" && is_local_host(host)) {
        return Err(UsageError(format!("login needs https, or a server on this machine: {url}")).into());
    }
    let endpoint = Endpoint::new(format!("{scheme}://{host}{METADATA}"));
    let endpoint = match &options.fingerprint {
        Some(fingerprint) => endpoint.with_pin(fingerprint.parse::<CertificatePin>()?),
        None => endpoint,
    };
    let text = match endpoint.fetch_text().await {
        Err(LinkError::Refused { status: 404, .. }) => bail!("this server has no identity provider: {url}"),
        fetched => fetched?,
    };
    let found: Value = serde_json::from_str(&text).with_context(|| format!("no answer of a gander server: {url}"))?;
    if found["gander_login"].is_null() {
        bail!("this server offers no login for programs, see auth.oidc.client_id in its settings: {url}");
    }
    serde_json::from_value(found["gander_login"].clone()).with_context(|| format!("unknown kind of login: {url}"))
}
