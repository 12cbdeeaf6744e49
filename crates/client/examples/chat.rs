//! A small chat with any agent: `cargo run -p gander-client --example chat -- [PROGRAM ARGUMENT… | URL [TOKEN]]`.
//!
//! Without arguments it starts `gander acp`. It lends the agent the files of the folder it runs in and asks before anything is allowed.
#![allow(clippy::print_stdout)]

use std::env;
use std::io::{BufRead, Write};
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, FileSystemCapabilities, Implementation, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, WriteTextFileRequest, WriteTextFileResponse,
};
use gander_client::{Agent, AgentLaunch, Client, Code, Endpoint, Error, Handler, Link, ProgramSearch, ShownUpdate};

/// A person at a terminal.
struct Terminal;

#[async_trait]
impl Handler for Terminal {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::new().fs(FileSystemCapabilities::new().read_text_file(true).write_text_file(true))
    }

    async fn updated(&self, update: SessionNotification) {
        match ShownUpdate::from(update.update) {
            ShownUpdate::Agent(text) => print!("{text}"),
            ShownUpdate::Tool(call) => println!("\n• {}", call.title),
            ShownUpdate::Plan(plan) => plan.entries.iter().for_each(|entry| println!("\n- {}", entry.content)),
            ShownUpdate::User(_)
            | ShownUpdate::Thought(_)
            | ShownUpdate::Content(_)
            | ShownUpdate::ToolChanged(_)
            | ShownUpdate::Title(_)
            | ShownUpdate::Mode(_)
            | ShownUpdate::Usage { .. }
            | ShownUpdate::Other(_) => {}
        }
        std::io::stdout().flush().ok();
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        println!("\nmay it: {}", request.tool_call.fields.title.unwrap_or_default());
        for (number, option) in request.options.iter().enumerate() {
            println!("  {} {}", number + 1, option.name);
        }
        let chosen = line("> ").await.and_then(|line| line.trim().parse::<usize>().ok());
        let option = chosen.and_then(|number| request.options.get(number.checked_sub(1)?));
        let outcome = match option {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
            }
            None => RequestPermissionOutcome::Cancelled,
        };
        Ok(RequestPermissionResponse::new(outcome))
    }

    async fn read_text_file(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let text = tokio::fs::read_to_string(&request.path).await.map_err(failed)?;
        let from = request.line.map_or(0, |line| line.saturating_sub(1) as usize);
        let lines =
            text.split_inclusive('\n').skip(from).take(request.limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(ReadTextFileResponse::new(lines.collect::<String>()))
    }

    async fn write_text_file(&self, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        tokio::fs::write(&request.path, request.content).await.map_err(failed)?;
        Ok(WriteTextFileResponse::new())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let first = arguments.next();
    let me = Implementation::new("chat", env!("CARGO_PKG_VERSION"));
    if let Some(url) = first.as_ref().filter(|first| first.contains("://")) {
        let endpoint = Endpoint::new(url).with_bearer(&arguments.next().unwrap_or_default())?;
        let link = if url.starts_with("ws") {
            Link::connect_websocket(&endpoint).await?
        } else {
            Link::connect_http(&endpoint)?
        };
        return chat(&Client::connect(link, me, Arc::new(Terminal)).await?).await;
    }
    let search = ProgramSearch::by_name(first.as_deref().unwrap_or("gander"));
    let search = search.with_path(env::var_os("PATH")).with_home(env::var_os("HOME"));
    let launch = match first {
        Some(_) => arguments.fold(AgentLaunch::from_search(search), AgentLaunch::with_argument),
        None => AgentLaunch::from_search(search).with_argument("acp"),
    };
    let agent = Agent::start(launch, me, Arc::new(Terminal)).await?;
    let ended = chat(agent.running_client()?).await;
    agent.stop().await;
    ended
}

async fn chat(client: &Client) -> anyhow::Result<()> {
    if let Some(info) = &client.initialize_response().agent_info {
        println!("{} {}; an empty line ends the chat", info.name, info.version);
    }
    let folder = env::current_dir().context("no folder to work in")?;
    let session = client.new_session(folder).await?.session_id;
    while let Some(text) = line("\n› ").await.filter(|line| !line.trim().is_empty()) {
        match client.prompt(session.clone(), vec![text.trim().into()]).await {
            Ok(end) => println!("\n({})", serde_json::to_value(end.stop_reason)?.as_str().unwrap_or("?")),
            Err(error) => println!("\n(failed: {error})"),
        }
    }
    Ok(())
}

/// One line of stdin, read where it may block.
async fn line(prompt: &'static str) -> Option<String> {
    let read = move || {
        print!("{prompt}");
        std::io::stdout().flush().ok()?;
        std::io::stdin().lock().lines().next()?.ok()
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

fn failed(error: std::io::Error) -> Error {
    Error::new(Code::Internal, error.to_string())
}
