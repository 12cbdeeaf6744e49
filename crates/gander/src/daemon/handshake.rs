//! The first line of each side on the Unix socket. What follows is plain ACP.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gander_domain::Policy;
use gander_models::Keys;
use gander_services::ListenSecurity;
use gander_services::token::TokenId;
use gander_wire::acp::AcpOptions;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The version of this handshake.
const HANDSHAKE: u32 = 1;
const LONGEST_LINE: u64 = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// What a client says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    gander: u32,
    /// The client's build.
    pub version: String,
    /// What it wants.
    #[serde(default)]
    pub want: Want,
    /// Where it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The model for its new sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission policy for its new sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Its providers' keys.
    #[serde(default)]
    pub keys: Keys,
    /// How it wants to be spoken to.
    #[serde(default, rename = "manner")]
    pub options: AcpOptions,
    /// Its program, if it can be started at a terminal to ask for a provider's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
}

/// What a client wants of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// To speak ACP.
    #[default]
    Acp,
    /// That it listens on TCP for as long as this connection lives, as older clients ask: without TLS.
    Listen(SocketAddr),
    /// The same, protected as the client's flags say.
    ListenWith {
        /// Where; port 0 is any that is free.
        address: SocketAddr,
        /// How connections are protected.
        security: ListenSecurity,
        /// The key that counts at this address beside the tokens, by its hash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<TokenId>,
    },
    /// That it ends in good order.
    Drain,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    gander: u32,
    /// The server's build.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// True if it was started by a client and may be replaced by another build.
    pub background: bool,
    /// Where it listens on TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<SocketAddr>,
    /// What clients pin, if the address that was asked for is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Why it does not do what was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Why there was no handshake.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// The other side hung up.
    #[error("the other side hung up")]
    Gone,
    /// The other side said nothing.
    #[error("the other side said nothing")]
    Silent,
    /// The other side said something else.
    #[error("the other side does not speak gander")]
    Foreign,
    /// The socket broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Hello {
    /// A hello of this build.
    pub fn new(want: Want) -> Self {
        let version = crate::VERSION.to_owned();
        let (keys, options) = (Keys::default(), AcpOptions::default());
        Self { gander: HANDSHAKE, version, want, cwd: None, model: None, policy: None, keys, options, program: None }
    }

    /// Reads a client's.
    pub async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Self, HelloError> {
        let hello: Self = read_handshake_line(reader).await?;
        if hello.gander == HANDSHAKE { Ok(hello) } else { Err(HelloError::Foreign) }
    }

    /// Says it.
    pub async fn write(&self, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), HelloError> {
        write_handshake_line(writer, self).await
    }
}

impl Welcome {
    /// The answer of this process.
    pub fn new(background: bool, listens: Vec<SocketAddr>, refused: Option<String>) -> Self {
        let (version, pid) = (crate::VERSION.to_owned(), std::process::id());
        Self { gander: HANDSHAKE, version, pid, background, listens, fingerprint: None, refused }
    }

    /// Reads a server's.
    pub async fn read(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Self, HelloError> {
        read_handshake_line(reader).await
    }

    /// Says it.
    pub async fn write(&self, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), HelloError> {
        write_handshake_line(writer, self).await
    }
}

async fn read_handshake_line<T: DeserializeOwned>(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<T, HelloError> {
    let mut line = Vec::new();
    let mut limited = reader.take(LONGEST_LINE);
    let read = tokio::time::timeout(PATIENCE, limited.read_until(b'\n', &mut line));
    read.await.map_err(|_| HelloError::Silent)??;
    if line.is_empty() {
        return Err(HelloError::Gone);
    }
    serde_json::from_slice(&line).map_err(|_| HelloError::Foreign)
}

async fn write_handshake_line(
    writer: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> Result<(), HelloError> {
    let mut line = serde_json::to_vec(value).expect("a hello is plain data");
    line.push(b'\n');
    writer.write_all(&line).await?;
    Ok(writer.flush().await?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_small_hello_is_enough() {
        let mut line = &br#"{"gander":1,"version":"0.1.0","cwd":"/x","keys":{"OPENAI_API_KEY":"k"}}"#[..];
        let hello = Hello::read(&mut line).await.unwrap();
        assert_eq!((hello.want, hello.cwd), (Want::Acp, Some("/x".into())));
        assert_eq!(hello.keys.get("OPENAI_API_KEY"), Some("k"));
    }

    #[tokio::test]
    async fn what_is_no_hello_is_refused() {
        for line in [&b"GET / HTTP/1.1\r\n"[..], b"{\"gander\":2,\"version\":\"9\"}\n", b"{}\n"] {
            assert!(matches!(Hello::read(&mut &line[..]).await, Err(HelloError::Foreign)), "{line:?}");
        }
        assert!(matches!(Hello::read(&mut &b""[..]).await, Err(HelloError::Gone)));
    }

    #[test]
    fn wishes_have_stable_names() {
        let wish = |want| serde_json::to_string(&want).unwrap();
        assert_eq!(wish(Want::Acp), r#""acp""#);
        assert_eq!(wish(Want::Drain), r#""drain""#);
        assert_eq!(wish(Want::Listen(([127, 0, 0, 1], 4747).into())), r#"{"listen":"127.0.0.1:4747"}"#);
    }
}
