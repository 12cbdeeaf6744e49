//! An agent that uses tools: it keeps notes in the session's folder and asks before it writes or deletes one.
//!
//! It understands `write NAME TEXT`, `read NAME` and `delete NAME`.

use std::path::PathBuf;

use gander::{
    Agent, AgentInfo, HandlerError, Permission, Plan, PlanItem, PlanStatus, Policy, Priority, PromptRequest,
    PromptResult, ServeError, StopReason, ToolCall, ToolContent, ToolKind, UpdateSink,
};
use serde_json::json;

pub fn agent() -> Agent {
    let info = AgentInfo::new("notes", "1.0.0")
        .title("Notes")
        .description("Keeps notes in a folder")
        .skill("Notes", "Writes, reads and deletes notes; asks before it changes one");
    Agent::new(info).on_prompt(answer)
}

async fn answer(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    let text = request.text();
    let mut words = text.trim().splitn(3, char::is_whitespace);
    match (words.next().unwrap_or_default(), words.next(), words.next()) {
        ("write", Some(name), Some(note)) => write_note(&request, &sink, name, note).await,
        ("read", Some(name), None) => read_note(&request, &sink, name).await,
        ("delete", Some(name), None) => delete_note(&request, &sink, name).await,
        _ => Err(HandlerError::invalid_input("say: write NAME TEXT, read NAME, or delete NAME")),
    }
}

async fn write_note(request: &PromptRequest, sink: &UpdateSink, name: &str, note: &str) -> PromptResult {
    let path = note_path(request, name)?;
    sink.plan(plan(PlanStatus::InProgress)).await?;
    let old = tokio::fs::read_to_string(&path).await.ok();
    let change = ToolContent::Diff { path: path.display().to_string(), old, new: note.to_owned() };
    let call = sink
        .tool_call("write_note")
        .kind(ToolKind::Edit)
        .title(format!("Write {name}"))
        .input(json!({ "name": name, "text": note }))
        .location(path.display().to_string())
        .preview(vec![change.clone()]);
    let started = match request.session().policy {
        Policy::ReadOnly => return Err(HandlerError::new("read_only", "this session may not write")),
        Policy::Auto | Policy::AutoEdit => call.start().await?,
        Policy::Ask => match call.request_permission().await? {
            Permission::Allowed(started) => started,
            Permission::Rejected { reason } => return stay(sink, reason).await,
        },
    };
    write_file(started, &path, note, change).await?;
    sink.plan(plan(PlanStatus::Completed)).await?;
    sink.text(format!("{name} is written.")).await?;
    Ok(StopReason::EndTurn)
}

async fn write_file(call: ToolCall, path: &PathBuf, note: &str, change: ToolContent) -> Result<(), HandlerError> {
    call.progress("writing").await?;
    let work = async {
        tokio::fs::write(path, note).await?;
        Ok::<_, std::io::Error>(vec![change])
    };
    call.run(work).await??;
    Ok(())
}

async fn read_note(request: &PromptRequest, sink: &UpdateSink, name: &str) -> PromptResult {
    let path = note_path(request, name)?;
    let call = sink.tool_call("read_note").kind(ToolKind::Read).title(format!("Read {name}"));
    // Reading changes nothing: it is done without asking. The inner error is the tool's own.
    match call.input(json!({ "name": name })).idempotent().run(tokio::fs::read_to_string(&path)).await? {
        Ok(output) => sink.text(output.text()).await?,
        Err(failure) => sink.text(format!("I have no such note: {failure}")).await?,
    }
    Ok(StopReason::EndTurn)
}

async fn delete_note(request: &PromptRequest, sink: &UpdateSink, name: &str) -> PromptResult {
    let path = note_path(request, name)?;
    let call = sink.tool_call("delete_note").kind(ToolKind::Delete).title(format!("Delete {name}"));
    match call.input(json!({ "name": name })).offer_always().request_permission().await? {
        Permission::Allowed(call) => {
            let always = if call.is_allowed_always() { " Next time I ask again: I forget." } else { "" };
            call.run(async { tokio::fs::remove_file(&path).await.map(|()| "gone") }).await??;
            sink.text(format!("{name} is deleted.{always}")).await?;
            Ok(StopReason::EndTurn)
        }
        Permission::Rejected { reason } => stay(sink, reason).await,
    }
}

async fn stay(sink: &UpdateSink, reason: Option<String>) -> PromptResult {
    sink.text(reason.map_or_else(|| "Nothing was changed.".to_owned(), |why| format!("Nothing was changed: {why}")))
        .await?;
    Ok(StopReason::Refusal)
}

/// A note is a file of the session's folder: a name that leads elsewhere is none.
fn note_path(request: &PromptRequest, name: &str) -> Result<PathBuf, HandlerError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if name.starts_with('.') || !name.chars().all(plain) {
        return Err(HandlerError::invalid_input(format!("not the name of a note: {name}")));
    }
    Ok(PathBuf::from(&request.session().workspace).join(name))
}

fn plan(status: PlanStatus) -> Plan {
    Plan { items: vec![PlanItem { text: "Write the note".to_owned(), priority: Priority::Medium, status }] }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    agent().serve().await
}
