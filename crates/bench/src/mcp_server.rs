//! The smallest MCP server: one tool that answers at once. This program is started again as it.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// The argument that makes this program the server.
pub(crate) const FLAG: &str = "--mcp-server";

/// Its tool.
pub(crate) const TOOL: &str = "echo";

/// Answers requests on the standard streams until nobody asks any more.
pub(crate) fn serve() -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }),
            "tools/list" => {
                let schema = json!({"type": "object", "properties": {}});
                json!({"tools": [{"name": TOOL, "description": "Answers at once", "inputSchema": schema}]})
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
            _ => json!({}),
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        output.flush()?;
    }
    Ok(())
}
