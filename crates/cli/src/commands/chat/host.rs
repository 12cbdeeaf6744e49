//! The server that the chat talks to: the one of the data directory, or one at an address.

use std::path::PathBuf;

use anyhow::Context as _;
use gander::config::Config;
use gander_client::schema::{
    ClientCapabilities, ClientSessionCapabilities, ElicitationCapabilities, ElicitationFormCapabilities,
    ElicitationUrlCapabilities, Implementation, NoticeCapabilities,
};
use gander_client::{AgentConnection, CertificatePin, Endpoint, Link};
use gander_services::oidc::StoredLogins;
use gander_services::token::owner_token;
use secrecy::ExposeSecret;

use super::flags::ChatOptions;
use crate::commands::{UsageError, client};

/// Where the chat connects to, each time anew.
pub(super) struct ChatHost {
    config: Config,
    folder: PathBuf,
    remote: Option<RemoteHost>,
}

/// A server at an address.
struct RemoteHost {
    url: String,
    endpoint: Endpoint,
    /// The token of a file, which comes before any other.
    token: Option<String>,
}

impl ChatHost {
    pub(super) fn new(config: &Config, folder: PathBuf, options: &ChatOptions) -> anyhow::Result<Self> {
        let remote = options.attach.as_ref().map(|url| RemoteHost::new(url, options)).transpose()?;
        Ok(Self { config: config.clone(), folder, remote })
    }

    /// Connects and introduces itself. The server of the data directory is started if none runs.
    pub(super) async fn connect(&self) -> anyhow::Result<AgentConnection> {
        match &self.remote {
            None => introduce_to_host(client::attach_client_link(&self.config, &self.folder).await?).await,
            Some(remote) => {
                let endpoint = remote.endpoint_with_token(&self.config).await?;
                introduce_to_host(Link::connect_websocket(&endpoint).await?).await
            }
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

impl RemoteHost {
    fn new(url: &str, options: &ChatOptions) -> anyhow::Result<Self> {
        let Some((scheme, rest)) = url.split_once("://") else {
            let message = format!("--attach takes an address such as http://127.0.0.1:4747, not: {url}");
            return Err(UsageError(message).into());
        };
        let has_path = rest.trim_end_matches('/').contains('/');
        let address = if has_path { url.to_owned() } else { format!("{scheme}://{}/acp", rest.trim_end_matches('/')) };
        let endpoint = match &options.fingerprint {
            Some(fingerprint) => Endpoint::new(address).with_pin(fingerprint.parse::<CertificatePin>()?),
            None => Endpoint::new(address),
        };
        let read =
            |file: &PathBuf| std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        let token = options.token_file.as_ref().map(read).transpose()?.map(|text| text.trim().to_owned());
        Ok(Self { url: url.to_owned(), endpoint, token })
    }

    /// With the token that counts now: one of `gander login` is refreshed before it ends.
    async fn endpoint_with_token(&self, config: &Config) -> anyhow::Result<Endpoint> {
        let host = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None => match StoredLogins::open(&config.paths)?.token(&self.url).await? {
                Some(token) => Some(token),
                // Our own token is shown to this machine alone.
                None if is_local_host(host) => Some(owner_token(&config.paths)?.expose_secret().to_owned()),
                None => None,
            },
        };
        match token {
            Some(token) => self.endpoint.clone().with_bearer(&token).context("the token cannot be sent as a header"),
            None => Ok(self.endpoint.clone()),
        }
    }
}

/// True if a host is this machine, in plain sight.
pub(crate) fn is_local_host(host: &str) -> bool {
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
