//! The server that the chat talks to: the one of the data directory, or one at an address.

use std::path::PathBuf;

use anyhow::Context as _;
use gander::config::Config;
use gander_client::schema::{
    ClientCapabilities, ClientSessionCapabilities, ElicitationCapabilities, ElicitationFormCapabilities,
    ElicitationUrlCapabilities, Implementation, NoticeCapabilities,
};
use gander_client::{AgentConnection, CertificatePin, Endpoint, Link};
use gander_services::token::owner_token;
use secrecy::ExposeSecret;

use super::flags::ChatOptions;
use crate::commands::{UsageError, client};

/// Where the chat connects to, each time anew.
pub(super) struct ChatHost {
    config: Config,
    folder: PathBuf,
    endpoint: Option<Endpoint>,
}

impl ChatHost {
    pub(super) fn new(config: &Config, folder: PathBuf, options: &ChatOptions) -> anyhow::Result<Self> {
        let endpoint = options.attach.as_ref().map(|url| host_endpoint(config, url, options)).transpose()?;
        Ok(Self { config: config.clone(), folder, endpoint })
    }

    /// Connects and introduces itself. The server of the data directory is started if none runs.
    pub(super) async fn connect(&self) -> anyhow::Result<AgentConnection> {
        match &self.endpoint {
            None => introduce_to_host(client::attach_client_link(&self.config, &self.folder).await?).await,
            Some(endpoint) => introduce_to_host(Link::connect_websocket(endpoint).await?).await,
        }
    }
}

/// Says that a person is here who answers questions, fills in forms and opens pages.
async fn introduce_to_host(link: Link) -> anyhow::Result<AgentConnection> {
    let forms =
        ElicitationCapabilities::new().form(ElicitationFormCapabilities::new()).url(ElicitationUrlCapabilities::new());
    let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::new());
    let offers = ClientCapabilities::new().session(session).elicitation(forms);
    let mut connection = AgentConnection::new(link);
    let call = connection.client.initialize_with(Implementation::new("gander-chat", gander::VERSION), offers);
    connection.wait_for_answer(call, |_| {}).await?;
    Ok(connection)
}

fn host_endpoint(config: &Config, url: &str, options: &ChatOptions) -> anyhow::Result<Endpoint> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(UsageError(format!("--attach takes an address such as http://127.0.0.1:4747, not: {url}")).into());
    };
    let has_path = rest.trim_end_matches('/').contains('/');
    let address = if has_path { url.to_owned() } else { format!("{scheme}://{}/acp", rest.trim_end_matches('/')) };
    let endpoint = Endpoint::new(address);
    let token = match &options.token_file {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            Some(text.trim().to_owned())
        }
        // Our own token is shown to this machine alone.
        None if is_local_host(rest) => Some(owner_token(&config.paths)?.expose_secret().to_owned()),
        None => None,
    };
    let endpoint = match token {
        Some(token) => endpoint.with_bearer(&token).context("the token cannot be sent as a header")?,
        None => endpoint,
    };
    match &options.fingerprint {
        Some(fingerprint) => Ok(endpoint.with_pin(fingerprint.parse::<CertificatePin>()?)),
        None => Ok(endpoint),
    }
}

fn is_local_host(host: &str) -> bool {
    let authority = host.split(['/', '?', '#']).next().unwrap_or_default();
    // A name before an @ would hide the true host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.split(']').next())
        .unwrap_or_else(|| host.split(':').next().unwrap_or_default());
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_token_stays_on_this_machine() {
        for (host, local) in [
            ("127.0.0.1:4747", true),
            ("localhost/acp", true),
            ("[::1]:4747", true),
            ("example.com", false),
            ("127.0.0.1.example.com", false),
            ("127.0.0.1@example.com", false),
            ("localhost.example.com:80", false),
        ] {
            assert_eq!(is_local_host(host), local, "{host}");
        }
    }
}
