//! A prompt handler that does what a script of the demo model says: `[[script:[{"text":"hi"}]]]`, or a list of lists.
//!
//! So the same prompts can be sent to the built-in agent and to a handler of the library.

use std::time::Duration;

use gander::{HandlerError, Permission, PromptRequest, PromptResult, StopReason, ToolKind, UpdateError, UpdateSink};
use serde_json::Value;

use crate::acp_rest_agents::{acp_rest_one_pixel_image, pause_unless_cancelled};

const SCRIPT_MARK: &str = "[[script:";
const MAX_CHUNKS: usize = 1_000;

/// Does what the script in the prompt says; a prompt without one is said back.
pub(crate) async fn play_demo_script(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    for step in demo_script_steps(&request.text())? {
        let pause = step["delay_ms"].as_u64().map(Duration::from_millis);
        pause_unless_cancelled(&request, pause.unwrap_or_default()).await?;
        if let Some(text) = step["text"].as_str() {
            say_in_chunks(&sink, text, &step).await?;
        }
        if let Some(thought) = step["thought"].as_str() {
            sink.thought(thought).await?;
        }
        if step["image"] == true {
            sink.part(acp_rest_one_pixel_image(None)).await?;
        }
        if step["error"].is_string() {
            return Err(HandlerError::new("bad_request", "the handler failed on purpose"));
        }
        if step["tool"] == "shell" {
            run_scripted_command(&request, &sink, &step["args"]).await?;
        }
    }
    Ok(StopReason::EndTurn)
}

fn demo_script_steps(text: &str) -> Result<Vec<Value>, HandlerError> {
    let Some((_, script)) = text.split_once(SCRIPT_MARK) else {
        return Ok(vec![serde_json::json!({ "text": format!("You said: {text}") })]);
    };
    let script: Value = match serde_json::Deserializer::from_str(script).into_iter().next() {
        Some(script) => script?,
        None => return Err(HandlerError::invalid_input("the script is empty")),
    };
    let steps = script.as_array().into_iter().flatten();
    Ok(steps.flat_map(|step| step.as_array().cloned().unwrap_or_else(|| vec![step.clone()])).collect())
}

async fn say_in_chunks(sink: &UpdateSink, text: &str, step: &Value) -> Result<(), UpdateError> {
    let wanted = step["chunks"].as_u64().and_then(|chunks| usize::try_from(chunks).ok()).unwrap_or(1);
    let letters: Vec<char> = text.chars().collect();
    let size = letters.len().div_ceil(wanted.clamp(1, MAX_CHUNKS)).max(1);
    for chunk in letters.chunks(size) {
        sink.text(chunk.iter().collect::<String>()).await?;
    }
    Ok(())
}

/// Asks, and runs the command in the session's folder if somebody agrees.
async fn run_scripted_command(request: &PromptRequest, sink: &UpdateSink, args: &Value) -> Result<(), HandlerError> {
    let line = args["command"].as_str().unwrap_or_default().to_owned();
    let call = sink.tool_call("shell").title(format!("shell: {line}")).kind(ToolKind::Execute).input(args.clone());
    match call.request_permission().await? {
        Permission::Allowed(call) => {
            let mut command = tokio::process::Command::new("/bin/sh");
            command.arg("-c").arg(&line).current_dir(&request.session().workspace).kill_on_drop(true);
            let output = call.run(async {
                let output = command.output().await?;
                Ok::<_, std::io::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
            });
            drop(output.await?);
        }
        Permission::Rejected { .. } => sink.text("It was not run. ").await?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scripts_of_one_call_and_of_several_are_read() {
        let steps = |text: &str| demo_script_steps(text).map_err(|error| error.message().to_owned());
        assert_eq!(steps(r#"go [[script:[{"text":"a"}]]]"#), Ok(vec![json!({ "text": "a" })]));
        let two = steps(r#"[[script:[[{"text":"a"}],[{"error":"bad_request"}]]]]"#);
        assert_eq!(two, Ok(vec![json!({ "text": "a" }), json!({ "error": "bad_request" })]));
        assert_eq!(steps("hello"), Ok(vec![json!({ "text": "You said: hello" })]));
        assert!(steps("[[script:").is_err());
    }
}
