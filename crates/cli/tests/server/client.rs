//! The client library at the real binary: over stdio, WebSocket and HTTP, across a cut and a restart.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, FileSystemCapabilities, Implementation, PermissionOptionKind, ReadTextFileRequest,
    ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, StopReason,
};
use gander_client::{
    Agent, AgentLaunch as Start, Client, Endpoint, Error, Handler, Link, LinkError, ShownUpdate, Version,
};
use gander_testkit::harness::{Launch, Server, binary, data, script, workspace};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Remembers what the agent says, allows everything once, and lends its files.
struct Editor {
    said: watch::Sender<String>,
    asked: Mutex<usize>,
}

impl Editor {
    fn new() -> Arc<Self> {
        Arc::new(Self { said: watch::Sender::new(String::new()), asked: Mutex::default() })
    }

    fn said(&self) -> String {
        self.said.borrow().clone()
    }
}

#[async_trait]
impl Handler for Editor {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::new().fs(FileSystemCapabilities::new().read_text_file(true))
    }

    async fn updated(&self, update: SessionNotification) {
        if let ShownUpdate::Agent(text) = update.update.into() {
            self.said.send_modify(|said| said.push_str(&text));
        }
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        *self.asked.lock().unwrap() += 1;
        let option = request.options.into_iter().find(|option| option.kind == PermissionOptionKind::AllowOnce);
        let option = option.ok_or_else(|| Error::invalid_params("no such option"))?;
        let chosen = SelectedPermissionOutcome::new(option.option_id);
        Ok(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(chosen)))
    }

    async fn read_text_file(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        Ok(ReadTextFileResponse::new(format!("unsaved: {}", request.path.display())))
    }
}

/// A server, and a folder to work in.
struct TestServer {
    server: Server,
    token: String,
    folder: PathBuf,
    _root: tempfile::TempDir,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Socket,
    Http,
}

impl TestServer {
    async fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path())?);
        let server = launch.serve().await?;
        let token = launch.stdout(&["token"]).await?.trim().to_owned();
        Ok(Self { server, token, folder: workspace(root.path())?, _root: root })
    }

    async fn link(&self, way: Way, address: impl std::fmt::Display) -> anyhow::Result<Link> {
        let endpoint = Endpoint::new(format!("http://{address}/acp")).with_bearer(&self.token)?;
        Ok(match way {
            Way::Socket => Link::connect_websocket(&endpoint).await?,
            Way::Http => Link::connect_http(&endpoint)?,
        })
    }
}

fn me() -> Implementation {
    Implementation::new("test", "0")
}

/// A turn with a permission, a lent file and a cancel, then the same session from the start at another client.
async fn converse(
    client: &Client,
    editor: &Editor,
    again: &Client,
    second: &Editor,
    folder: &Path,
) -> anyhow::Result<()> {
    let session = client.new_session(folder).await?.session_id;
    let calls = script(&[
        json!([{"tool": "shell", "args": {"command": "touch made"}}]),
        json!([{"tool": "read", "args": {"path": "unsaved.txt"}}]),
        json!([{"text": "All done.", "chunks": 4}]),
    ]);
    let end = client.prompt(session.clone(), vec![calls.into()]).await?;
    assert_eq!(
        (end.stop_reason, editor.said(), *editor.asked.lock().unwrap()),
        (StopReason::EndTurn, "All done.".to_owned(), 1)
    );
    ensure!(folder.join("made").exists(), "the command did not run");
    let long = script(&[json!([{"text": "~", "repeat": 100_000, "delay_ms": 2}])]);
    let turn = tokio::spawn({
        let (client, session) = (client.clone(), session.clone());
        async move { client.prompt(session, vec![long.into()]).await }
    });
    editor.said.subscribe().wait_for(|said| said.ends_with('~')).await?;
    client.cancel(session.clone()).await?;
    assert_eq!(turn.await??.stop_reason, StopReason::Cancelled);
    again.load_session(session, folder).await?;
    assert_eq!(second.said(), editor.said());
    let unknown = client.request::<Value>("_no_such", &json!({})).await.unwrap_err();
    assert_eq!(unknown.json_rpc_code(), -32601);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_into_the_server_carries_a_whole_conversation() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    for way in [Way::Socket, Way::Http] {
        let (first, second) = (Editor::new(), Editor::new());
        let client =
            Client::connect(test_server.link(way, test_server.server.address).await?, me(), first.clone()).await?;
        let again =
            Client::connect(test_server.link(way, test_server.server.address).await?, me(), second.clone()).await?;
        converse(&client, &first, &again, &second, &test_server.folder).await.with_context(|| format!("{way:?}"))?;
        std::fs::remove_file(test_server.folder.join("made"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_found_checked_started_and_talked_to() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    let start = || {
        let program = binary(env!("CARGO_BIN_EXE_gander"));
        let start = Start::from_search(program)
            .with_argument("acp")
            .with_argument("--data")
            .with_argument(&test_server.server.launch.data);
        start.with_minimum_version(Version(0, 1, 0)).with_folder(&test_server.folder)
    };
    let (first, second) = (Editor::new(), Editor::new());
    let mut agent = Agent::start(start(), me(), first.clone()).await?;
    let again = Agent::start(start(), me(), second.clone()).await?;
    converse(agent.running_client()?, &first, again.running_client()?, &second, &test_server.folder).await?;
    agent.restart_process().await?;
    agent.running_client()?.new_session(&test_server.folder).await?;
    agent.stop().await;
    again.stop().await;
    Ok(())
}

/// Passes bytes on, and cuts every connection when told to.
async fn cutter(to: std::net::SocketAddr, cut: watch::Receiver<u32>) -> anyhow::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cut = cut.clone();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(to).await.unwrap();
                cut.mark_unchanged();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = cut.changed() => {}
                }
            });
        }
    });
    Ok(address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_stream_is_resumed_without_a_gap_or_a_double() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    let (cut, cuts) = watch::channel(0);
    let through = cutter(test_server.server.address, cuts).await?;
    let editor = Editor::new();
    let client = Client::connect(test_server.link(Way::Http, through).await?, me(), editor.clone()).await?;
    let session = client.new_session(&test_server.folder).await?.session_id;
    let words: String = (0..400).map(|number| format!("{number} ")).collect();
    let calls = script(&[json!([{"text": words, "chunks": 400, "delay_ms": 2}])]);
    let turn = tokio::spawn({
        let client = client.clone();
        async move { client.prompt(session, vec![calls.into()]).await }
    });
    for length in [100, 500, 900] {
        editor.said.subscribe().wait_for(|said| said.len() > length).await?;
        cut.send_modify(|cuts| *cuts += 1);
    }
    assert_eq!(turn.await??.stop_reason, StopReason::EndTurn);
    assert_eq!(editor.said(), words);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_and_a_closed_port_say_so() -> anyhow::Result<()> {
    let mut test_server = TestServer::open().await?;
    test_server.token = "wrong".to_owned();
    let refused =
        Client::connect(test_server.link(Way::Http, test_server.server.address).await?, me(), Arc::new(())).await;
    ensure!(refused.unwrap_err().to_string().starts_with("the server refused with 401"), "not refused");
    let refused = test_server.link(Way::Socket, test_server.server.address).await.unwrap_err();
    ensure!(matches!(refused.downcast_ref(), Some(LinkError::Refused { status: 401, .. })), "{refused}");
    let closed = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let nobody = Client::connect(test_server.link(Way::Http, closed).await?, me(), Arc::new(())).await.unwrap_err();
    assert_eq!(nobody.json_rpc_code(), -32000);
    Ok(())
}
