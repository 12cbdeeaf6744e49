//! An editor that lends files or terminals, and what happens to what it does not lend.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use gander_tools::{CommandEnd, CommandLine, Exit, Host, HostError, Live, Offers};
use serde_json::json;

use crate::builtin::{Bench, ToolEvent};

/// Says yes to everything and notes it down.
struct Editor {
    offers: Offers,
    asked: Mutex<Vec<String>>,
}

impl Editor {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

#[async_trait]
impl Host for Editor {
    fn offers(&self) -> Offers {
        self.offers
    }

    async fn read_text(&self, path: &Path) -> Result<String, HostError> {
        self.note(format!("read {}", path.file_name().unwrap().to_string_lossy()));
        Ok("unsaved text\n".into())
    }

    async fn write_text(&self, path: &Path, content: &str) -> Result<(), HostError> {
        self.note(format!("write {} {content:?}", path.file_name().unwrap().to_string_lossy()));
        Ok(())
    }

    async fn run_command(&self, command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
        self.note(format!("run {}", command.line));
        live.show_content(vec![ToolContent::Terminal { id: "t1".into() }]);
        Ok(CommandEnd { output: "from the editor\n".into(), exit: Exit::Code(0), terminal: Some("t1".into()) })
    }
}

fn lend(bench: &mut Bench, offers: Offers) -> Arc<Editor> {
    let editor = Arc::new(Editor { offers, asked: Mutex::default() });
    bench.context.host = editor.clone();
    editor
}

#[tokio::test]
async fn an_editor_lends_its_files() {
    let mut bench = Bench::new();
    bench.put("a", "saved text\n");
    let editor = lend(&mut bench, Offers { read: true, write: true, terminal: false });
    assert_eq!(bench.done("read", json!({"path": "a"})).await, "1\tunsaved text\n");
    assert_eq!(bench.done("read", json!({"path": "never-saved"})).await, "1\tunsaved text\n");
    bench.done("edit", json!({"path": "a", "old": "unsaved", "new": "edited"})).await;
    assert_eq!(bench.done("shell", json!({"command": "cat a"})).await, "saved text");
    bench.refused("read", json!({"path": "../secret.txt"})).await;
    bench.refused("write", json!({"path": "../secret.txt", "content": ""})).await;
    let asked = editor.asked.lock().unwrap().clone();
    assert_eq!(asked, ["read a", "read never-saved", "read a", "write a \"edited text\\n\""]);
}

#[tokio::test]
async fn an_editor_lends_its_terminal() {
    let mut bench = Bench::new();
    bench.put("a", "saved text\n");
    lend(&mut bench, Offers { read: false, write: false, terminal: true });
    let terminal = ToolContent::Terminal { id: "t1".into() };
    let text = ToolContent::Part { part: Part::text("from the editor") };
    let expected = ToolResult {
        end: ToolEnd::Completed,
        content: vec![terminal.clone(), text],
        raw: Some(json!({"exit_code": 0})),
    };
    assert_eq!(bench.call("shell", json!({"command": "make"})).await, expected);
    assert_eq!(bench.signals.recv().await, Some(ToolEvent::Shown(vec![terminal])));
    assert_eq!(bench.done("read", json!({"path": "a"})).await, "1\tsaved text\n");
    bench.done("write", json!({"path": "a", "content": "new\n"})).await;
    assert_eq!(bench.get("a"), "new\n");
}
