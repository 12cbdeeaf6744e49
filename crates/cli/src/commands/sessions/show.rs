//! `gander sessions show`: a session from its beginning, and what it used.

use std::path::Path;

use gander_client::schema::Cost;
use gander_client::{AgentConnection, ShownUpdate};
use serde_json::{Value, json};

use crate::commands::Context;
use crate::commands::run::ending::{ending_cost_text, grouped_number};
use crate::commands::run::events;
use crate::commands::run::session::load_session_history;
use crate::output::Tone;
use crate::terminal::view::{AnswerKind, Piece, TerminalView};

/// Prints it.
pub(super) async fn show_session(
    context: &Context,
    connection: &mut AgentConnection,
    id: &str,
    here: &Path,
    json: bool,
) -> anyhow::Result<()> {
    let output = context.output;
    let view = connection.call_method("_gander/session/show", &json!({ "sessionId": id })).await?;
    let history = load_session_history(connection, id, here.to_str().unwrap_or("/")).await?;
    let mut screen = TerminalView::new(output, AnswerKind::Text);
    // Here everything is the result.
    let print = |pieces: Vec<Piece>| {
        pieces.into_iter().try_for_each(|piece| {
            let (Piece::Out(text) | Piece::Err(text)) = piece;
            output.piece(&text)
        })
    };
    for update in history {
        let heard = ShownUpdate::from(update);
        match json {
            true => output.line(&events::update_event_json(&heard).to_string())?,
            false => print(screen.show_update(&heard))?,
        }
    }
    if json {
        return Ok(output.line(&json!({ "type": "spent", "spent": view["spent"] }).to_string())?);
    }
    print(screen.close())?;
    output.note(&output.error_style().paint(Tone::Dim, &session_spent_text(&view)));
    Ok(())
}

/// What the session used and does now, in one line.
fn session_spent_text(view: &Value) -> String {
    let spent = &view["spent"];
    let tokens = |name: &str| grouped_number(spent[name].as_u64().unwrap_or(0));
    let mut parts = vec![format!("{} tokens in, {} out", tokens("input"), tokens("output"))];
    #[expect(clippy::cast_precision_loss, reason = "prices are shown with four digits")]
    let cost = spent["cost"].as_u64().filter(|cost| *cost > 0).map(|cost| cost as f64 / 1e6);
    parts.extend(cost.map(|amount| ending_cost_text(&Cost::new(amount, "USD"))));
    let waits = view["run"]["questions"].as_array().is_some_and(|questions| !questions.is_empty());
    parts.push(match (view["run"].is_null(), waits) {
        (true, _) => "idle".to_owned(),
        (false, true) => "waiting for your answer".to_owned(),
        (false, false) => "running".to_owned(),
    });
    parts.join(" · ")
}
