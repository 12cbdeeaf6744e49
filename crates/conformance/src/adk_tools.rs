//! The tools of the scripted agents: each leaves something that clients can find again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::{Report, SessionView, State, ToolCallId, ToolEnd, ToolResult};
use gander_services::artifacts::{ArtifactContent, ArtifactScope, Artifacts, NewVersion};
use gander_services::state::{SharedState, StateScopeKey};
use gander_store::Store;
use serde_json::{Map, Value, json};

/// The tools, with the store that they write to.
pub(crate) struct ScriptedTools {
    pub(crate) store: Arc<dyn Store>,
}

pub(crate) struct ToolOutcome {
    pub(crate) result: ToolResult,
    saved: Option<(String, u64, ArtifactContent)>,
    kept: State,
}

impl ToolOutcome {
    fn completed(value: Value) -> Self {
        let result = ToolResult { end: ToolEnd::Completed, content: Vec::new(), raw: Some(value) };
        Self { result, saved: None, kept: Map::new() }
    }

    /// What the log is told beside the result.
    pub(crate) fn effects(&self, call: ToolCallId) -> Vec<Report> {
        let call = Some(call);
        let saved = self.saved.clone().map(|(name, version, content)| {
            let mime = Some("text/plain".to_owned());
            Report::ArtifactSaved { name, version, mime, content: content.content_for_log(), call }
        });
        let kept = (!self.kept.is_empty()).then(|| Report::StateChanged { delta: self.kept.clone(), call });
        saved.into_iter().chain(kept).collect()
    }
}

impl ScriptedTools {
    pub(crate) async fn run(&self, view: &SessionView, name: &str, arguments: &Value) -> ToolOutcome {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        match name {
            "get_weather" => ToolOutcome::completed(json!({ "city": text("city"), "sky": "clear", "celsius": 21 })),
            "delete_file" => ToolOutcome::completed(json!({ "deleted": text("path") })),
            "transfer_money" => ToolOutcome::completed(json!({ "status": "sent", "amount": arguments["amount"] })),
            "start_job" => ToolOutcome::completed(json!({ "status": "pending", "ticket": "job-1" })),
            "transfer_to_agent" => ToolOutcome::completed(json!({ "result": null })),
            "save_note" => self.save_note(view, text("name"), &text("body")).await,
            "set_pref" => self.set_pref(view, &text("key"), &arguments["value"]).await,
            _ => ToolOutcome {
                result: ToolResult::text(ToolEnd::Failed, "tool is broken"),
                saved: None,
                kept: Map::new(),
            },
        }
    }

    async fn save_note(&self, view: &SessionView, name: String, body: &str) -> ToolOutcome {
        let content = ArtifactContent::Bytes { data: STANDARD.encode(body) };
        let mime = Some("text/plain".to_owned());
        let new = NewVersion { name: name.clone(), mime, metadata: Map::new(), content: content.clone() };
        let saved = Artifacts::new(Arc::clone(&self.store)).save(&ArtifactScope::for_session(view.session), new).await;
        match saved {
            Ok(version) => ToolOutcome {
                saved: Some((name.clone(), version.number, content)),
                ..ToolOutcome::completed(json!({ "saved": name, "version": version.number }))
            },
            Err(error) => {
                let result = ToolResult::text(ToolEnd::Failed, error.to_string());
                ToolOutcome { result, saved: None, kept: Map::new() }
            }
        }
    }

    async fn set_pref(&self, view: &SessionView, key: &str, value: &Value) -> ToolOutcome {
        let names = ["", "user:", "app:", "temp:"].map(|scope| (format!("{scope}{key}"), value.clone()));
        let kept: State = names.into_iter().collect();
        let shared = SharedState::new(Arc::clone(&self.store));
        let kept_for_all = async {
            let room = StateScopeKey::for_session(&*self.store, view, "user").await?;
            shared.set(&room, &kept).await
        };
        match kept_for_all.await {
            Ok(()) => ToolOutcome { kept, ..ToolOutcome::completed(json!({ "ok": true })) },
            Err(error) => {
                let result = ToolResult::text(ToolEnd::Failed, error.to_string());
                ToolOutcome { result, saved: None, kept: Map::new() }
            }
        }
    }
}
