//! `gander sessions`: what there is, and what becomes of it.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, bail};
use gander_client::{AgentConnection, AgentEvent, ShownUpdate};
use gander_services::paths::write_private;
use serde_json::{Map, Value, json};

use super::options::SessionsCommand;
use super::terminal_view::{Piece, TerminalView};
use super::{client, events};
use crate::commands::{Context, Exit};
use crate::output::{Tone, clean};

pub(super) async fn run(context: Context, command: SessionsCommand) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect(&context.config, &here).await?;
    match command {
        SessionsCommand::List { cwd, json } => list(&context, &mut connection, cwd.as_deref(), json).await?,
        SessionsCommand::Show { id, json } => show(&context, &mut connection, &id, &here, json).await?,
        SessionsCommand::Export { id, output } => export(&context, &mut connection, &id, output.as_deref()).await?,
        SessionsCommand::Import { file, cwd } => import(&context, &mut connection, &file, cwd.as_deref()).await?,
        SessionsCommand::Rename { id, title } => {
            connection.call_method("_gander/session/rename", &json!({ "sessionId": id, "title": title })).await?;
        }
        SessionsCommand::Delete { ids } => {
            for id in ids {
                let deleted = connection.call_method("session/delete", &json!({ "sessionId": id })).await;
                deleted.with_context(|| format!("cannot delete {id}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

async fn list(
    context: &Context,
    connection: &mut AgentConnection,
    cwd: Option<&Path>,
    json: bool,
) -> anyhow::Result<()> {
    let mut params = Map::new();
    if let Some(cwd) = cwd {
        let folder = cwd.canonicalize().with_context(|| format!("no such folder: {}", cwd.display()))?;
        params.insert("cwd".to_owned(), json!(folder));
    }
    loop {
        let page = connection.call_method("session/list", &Value::Object(params.clone())).await?;
        for session in page["sessions"].as_array().into_iter().flatten() {
            let line = if json { session.to_string() } else { row(context, session) };
            context.output.line(&line)?;
        }
        let Some(cursor) = page["nextCursor"].as_str() else { return Ok(()) };
        params.insert("cursor".to_owned(), json!(cursor));
    }
}

fn row(context: &Context, session: &Value) -> String {
    let style = context.output.style();
    let text = |name: &str| clean(session[name].as_str().unwrap_or_default());
    let when: String = text("updatedAt").replace('T', " ").chars().take(16).collect();
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| "(no title)".to_owned());
    let folder = style.paint(Tone::Dim, &text("cwd"));
    format!("{}  {}  {title}  {folder}", text("sessionId"), style.paint(Tone::Dim, &when))
}

async fn show(
    context: &Context,
    connection: &mut AgentConnection,
    id: &str,
    here: &Path,
    json: bool,
) -> anyhow::Result<()> {
    let output = context.output;
    let call = connection.client.load_session(id, here.to_str().unwrap_or("/"));
    let mut history = Vec::new();
    connection
        .wait_for_answer(call, |told| {
            if let AgentEvent::Updated(update) = told {
                history.push(ShownUpdate::from(update.update));
            }
        })
        .await?;
    let mut screen = TerminalView::new(output.style(), output.error_style());
    for heard in &history {
        if json {
            output.line(&events::update_json(heard).to_string())?;
            continue;
        }
        for piece in screen.show_update(heard) {
            // Here everything is the result.
            let (Piece::Out(text) | Piece::Err(text)) = piece;
            output.piece(&text)?;
        }
    }
    for piece in screen.close() {
        let (Piece::Out(text) | Piece::Err(text)) = piece;
        output.piece(&text)?;
    }
    Ok(())
}

/// One line that says what it is, then one entry per line: every tool that knows lines can read it.
async fn export(
    context: &Context,
    connection: &mut AgentConnection,
    id: &str,
    to: Option<&Path>,
) -> anyhow::Result<()> {
    let mut document = connection.call_method("_gander/session/export", &json!({ "sessionId": id })).await?;
    let entries = document.as_object_mut().and_then(|document| document.remove("entries"));
    let Some(Value::Array(entries)) = entries else { bail!("the server exported no entries") };
    let lines = std::iter::once(&document).chain(&entries).map(|line| format!("{line}\n"));
    match to {
        Some(path) => {
            let text: String = lines.collect();
            write_private(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(lines.into_iter().try_for_each(|line| context.output.piece(&line))?),
    }
}

async fn import(
    context: &Context,
    connection: &mut AgentConnection,
    from: &Path,
    cwd: Option<&Path>,
) -> anyhow::Result<()> {
    let mut text = String::new();
    match from.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        Some(_) | None => std::fs::read_to_string(from).map(|read| text = read),
    }
    .with_context(|| format!("cannot read {}", from.display()))?;
    let mut lines =
        text.lines().filter(|line| !line.trim().is_empty()).zip(1..).map(|(line, number)| {
            serde_json::from_str::<Value>(line).with_context(|| format!("line {number} is no JSON"))
        });
    let mut log = lines.next().context("the file is empty")??;
    let entries = lines.collect::<Result<Vec<Value>, _>>()?;
    let Some(document) = log.as_object_mut() else { bail!("the first line does not say what this is") };
    // A document in one piece is as good as one entry per line.
    document.entry("entries").or_insert(Value::Array(entries));
    let cwd = cwd.map(|cwd| cwd.canonicalize().with_context(|| format!("no such folder: {}", cwd.display())));
    let params = json!({ "log": log, "cwd": cwd.transpose()? });
    let answer = connection.call_method("_gander/session/import", &params).await?;
    let reset: Vec<&str> = answer["reset"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !reset.is_empty() {
        context.output.note(&format!("not taken from the file: {}", clean(&reset.join(", "))));
    }
    let folder = clean(answer["workspace"].as_str().unwrap_or_default());
    context.output.note(&format!("the session works in {folder} (--cwd chooses another folder)"));
    context.output.line(answer["sessionId"].as_str().unwrap_or_default())?;
    Ok(())
}
