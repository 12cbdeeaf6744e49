//! Sessions that a goose has of its own, and the tools of one that is ours.

use gander_domain::{Principal, Role, SessionView, sanitize};
use gander_store::Alias;
use gander_wire::goose::client::GoosedError;
use serde_json::{Value, json};

use super::{ALIAS_KIND, Goosed, Protocol, acp_run, goosed_store_trouble};
use crate::backend::{RemoteContent, RemoteSession, RemoteTool};

/// Of more sessions or tools the rest is left out.
const MAX_LISTED: usize = 1_000;

/// The longest name, title and description in bytes: they come from another machine.
const MAX_TEXT: usize = 1_024;

impl Goosed {
    /// Its sessions, but for those that stand behind one of this owner's.
    pub(super) async fn fetch_sessions(&self, owner: &Principal) -> Result<Vec<RemoteSession>, GoosedError> {
        let answer = match self.detect_protocol().await? {
            Protocol::Rest => self.http.get("/sessions").await?,
            Protocol::Acp => acp_run::call_acp_run_method(self, "session/list", json!({})).await?,
        };
        let listed =
            answer["sessions"].as_array().into_iter().flatten().filter_map(read_remote_session).take(MAX_LISTED);
        let mut own = Vec::new();
        for session in listed {
            let alias = Alias {
                principal: owner.clone(),
                door: ALIAS_KIND.to_owned(),
                namespace: self.name.clone(),
                text: session.id.clone(),
            };
            if self.store.resolve_alias(&alias).await.map_err(goosed_store_trouble)?.is_none() {
                own.push(session);
            }
        }
        Ok(own)
    }

    /// Puts one of its sessions behind ours, and gives what was said in it.
    pub(super) async fn adopt_session(
        &self,
        view: &SessionView,
        theirs: &str,
    ) -> Result<Vec<(Role, String)>, GoosedError> {
        let RemoteContent::Text(export) = self.fetch_export(theirs).await?.content else { return Ok(Vec::new()) };
        let export: Value = serde_json::from_str(&export)
            .map_err(|_| GoosedError::Unreadable("an exported session that is no JSON".to_owned()))?;
        self.session_mapping(view).set_remote_id(theirs).await.map_err(goosed_store_trouble)?;
        Ok(export["conversation"].as_array().into_iter().flatten().filter_map(read_remote_session_message).collect())
    }

    /// The tools of the goose session behind ours.
    pub(super) async fn fetch_tools(&self, view: &SessionView) -> Result<Vec<RemoteTool>, GoosedError> {
        let Some(theirs) = self.session_mapping(view).find_remote_id().await.map_err(goosed_store_trouble)? else {
            return Ok(Vec::new());
        };
        let answer = match self.detect_protocol().await? {
            Protocol::Rest => self.http.get(&format!("/agent/tools?session_id={theirs}")).await?,
            Protocol::Acp => {
                acp_run::call_acp_run_method(self, "_goose/unstable/tools/list", json!({ "sessionId": theirs })).await?
            }
        };
        let listed = answer.as_array().or_else(|| answer["tools"].as_array());
        Ok(listed.into_iter().flatten().filter_map(read_remote_session_tool).take(MAX_LISTED).collect())
    }
}

/// REST has `id` and `name`, ACP `sessionId` and `title`.
fn read_remote_session(session: &Value) -> Option<RemoteSession> {
    let id = session["id"].as_str().or_else(|| session["sessionId"].as_str())?;
    let fits = !id.is_empty() && id.len() <= 128 && id.chars().all(|letter| letter.is_ascii_graphic() && letter != '/');
    let title = session["name"].as_str().or_else(|| session["title"].as_str()).map(short_remote_session_line);
    fits.then(|| RemoteSession { id: id.to_owned(), title })
}

/// Words only: what tools did is in goose's own log.
fn read_remote_session_message(message: &Value) -> Option<(Role, String)> {
    let role = if message["role"] == "user" { Role::User } else { Role::Agent };
    let content = message["content"].as_array()?;
    let texts = content.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some((role, text))
}

/// Parameters are a schema, or the mere names that goosed lists.
fn read_remote_session_tool(tool: &Value) -> Option<RemoteTool> {
    let name = tool["name"].as_str().filter(|name| !name.is_empty() && name.len() <= MAX_TEXT)?;
    let schema =
        ["inputSchema", "input_schema"].iter().find_map(|key| tool.get(*key).filter(|schema| schema.is_object()));
    let names = tool["parameters"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named =
        || json!({ "type": "object", "properties": names.map(|name| (name.to_owned(), json!({}))).collect::<Value>() });
    Some(RemoteTool {
        name: name.to_owned(),
        description: short_remote_session_line(tool["description"].as_str().unwrap_or_default()),
        parameters: schema.cloned().unwrap_or_else(named),
    })
}

fn short_remote_session_line(text: &str) -> String {
    let line = sanitize::sanitized_line(text);
    line[..line.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sessions_and_tools_are_read_in_either_form() {
        let session = |value: Value| read_remote_session(&value);
        assert_eq!(session(json!({"id": "a", "name": "Chat"})).unwrap().title.as_deref(), Some("Chat"));
        assert_eq!(session(json!({"sessionId": "b"})).unwrap(), RemoteSession { id: "b".to_owned(), title: None });
        assert_eq!(session(json!({"id": "../x"})), None);
        let named =
            read_remote_session_tool(&json!({"name": "shell", "description": "Runs", "parameters": ["command"]}))
                .unwrap();
        assert_eq!(named.parameters, json!({"type": "object", "properties": {"command": {}}}));
        let schema = json!({"type": "object"});
        assert_eq!(read_remote_session_tool(&json!({"name": "x", "inputSchema": schema})).unwrap().parameters, schema);
    }
}
