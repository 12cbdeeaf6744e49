//! One server for all cases, and the ways to it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use agent_client_protocol::{AcpAgent, AcpAgentConfig, Client, DynConnectTo};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
    WebSocket,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::WebSocket => "websocket",
        }
    }
}

pub struct TestServer {
    gander: PathBuf,
    root: tempfile::TempDir,
    address: String,
    token: String,
    server: Child,
}

impl TestServer {
    pub async fn open(gander: impl Into<PathBuf>) -> Result<Self, Box<dyn std::error::Error>> {
        let (gander, root) = (gander.into(), tempfile::tempdir()?);
        std::fs::create_dir(root.path().join("work"))?;
        let mut serve = command(&gander, root.path());
        serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = serve.spawn()?;
        let mut said = BufReader::new(server.stdout.take().ok_or("no stdout")?).lines();
        let line = said.next_line().await?.ok_or("the server ended")?;
        let address = line.split_once("http://").ok_or("no address")?.1.trim().to_owned();
        // Over the network comes somebody who was given a token to prompt and to answer with, not the owner.
        let mut add = command(&gander, root.path());
        let added = add.args(["token", "add", "editor", "--scopes", "prompt,approve"]).output().await?;
        let token = String::from_utf8(added.stdout)?.trim().to_owned();
        Ok(Self { gander, root, address, token, server })
    }

    pub async fn close(mut self) {
        self.server.kill().await.ok();
    }

    /// A way in.
    pub fn way(&self, transport: Transport) -> DynConnectTo<Client> {
        match transport {
            Transport::Stdio => {
                let agent = AcpAgentConfig::new(&self.gander).arg("acp").envs(variables(self.root.path()));
                DynConnectTo::new(AcpAgent::new(agent))
            }
            Transport::Http => DynConnectTo::new(self.client("http")),
            Transport::WebSocket => DynConnectTo::new(self.client("ws")),
        }
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn has(&self, file: &str) -> bool {
        self.work().join(file).exists()
    }

    fn client(&self, scheme: &str) -> HttpClient {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token)).expect("a token is plain text");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        HttpClient::builder(format!("{scheme}://{}", self.address))
            .configure_http(|http| http.no_proxy().default_headers(headers))
            .build()
            .expect("the address is one of ours")
    }
}

/// A prompt that tells the demo model what to do, call by call.
pub fn script(calls: &[Value]) -> String {
    format!("[[script:{}]]", json!(calls))
}

/// A prompt whose one command makes a file.
pub fn touch(file: &str) -> String {
    let command = json!({"command": format!("touch {file}")});
    script(&[json!([{"tool": "shell", "args": command}]), json!([{"text": "All done."}])])
}

/// A prompt that is answered for minutes.
pub fn endless() -> String {
    script(&[json!([{"text": "~", "repeat": 100_000, "delay_ms": 2}])])
}

fn command(gander: &Path, root: &Path) -> Command {
    let mut command = Command::new(gander);
    command.env_clear().envs(variables(root)).stdin(Stdio::null());
    command
}

fn variables(root: &Path) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let [data, home] = [root.join("data"), root.to_owned()].map(|path| path.display().to_string());
    let roots = json!([root.join("work")]).to_string();
    [
        ("PATH", path),
        ("HOME", home),
        ("GANDER_DATA", data),
        ("GANDER_MODEL", "demo/demo".to_owned()),
        ("GANDER_SERVER_ROOTS", roots),
        ("GANDER_ACP_V2", "true".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
