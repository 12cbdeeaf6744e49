//! What a goose keeps for a session and others may read: its own file of the session, and resources of its extensions.

use gander_domain::SessionView;
use gander_wire::goose::client::GoosedError;
use serde_json::json;

use super::{Goosed, Protocol, acp_run, goosed_store_trouble};
use crate::backend::{RemoteContent, RemoteFile};

/// The session as goose exports it.
const EXPORT_FILE: &str = "goose-session.json";

/// What stands before an extension's name and the address of its resource.
const RESOURCE_PREFIX: &str = "resource:";

impl Goosed {
    /// The names of what can be listed. Resources are known to their extensions alone.
    pub(super) async fn remote_file_names(&self, view: &SessionView) -> Vec<String> {
        match self.session_mapping(view).find_remote_id().await {
            Ok(Some(_)) => vec![EXPORT_FILE.to_owned()],
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// The one of this name; nothing if goose has no such thing.
    pub(super) async fn fetch_remote_file(
        &self,
        view: &SessionView,
        name: &str,
    ) -> Result<Option<RemoteFile>, GoosedError> {
        let Some(theirs) = self.session_mapping(view).find_remote_id().await.map_err(goosed_store_trouble)? else {
            return Ok(None);
        };
        let resource = name.strip_prefix(RESOURCE_PREFIX).and_then(|rest| rest.split_once(':'));
        let found = match (name == EXPORT_FILE, resource) {
            (true, _) => self.fetch_export(&theirs).await,
            (false, Some((extension, uri))) => self.fetch_resource(&theirs, extension, uri).await,
            (false, None) => return Ok(None),
        };
        match found {
            Ok(holding) => Ok(Some(holding)),
            Err(GoosedError::NotFound) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// A JSON text, which goose wraps into a JSON string.
    pub(super) async fn fetch_export(&self, theirs: &str) -> Result<RemoteFile, GoosedError> {
        let answer = match self.detect_protocol().await? {
            Protocol::Rest => self.http.get(&format!("/sessions/{theirs}/export")).await?,
            Protocol::Acp => {
                let answer = acp_run::call_acp_run_method(
                    self,
                    "_goose/unstable/session/export",
                    json!({ "sessionId": theirs }),
                )
                .await?;
                answer.get("data").cloned().unwrap_or(answer)
            }
        };
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        Ok(RemoteFile { mime: "application/json".to_owned(), content: RemoteContent::Text(text) })
    }

    async fn fetch_resource(&self, theirs: &str, extension: &str, uri: &str) -> Result<RemoteFile, GoosedError> {
        let answer = match self.detect_protocol().await? {
            Protocol::Rest => {
                let body = json!({ "session_id": theirs, "extension_name": extension, "uri": uri });
                self.http.post_json("/agent/read_resource", &body).await?
            }
            Protocol::Acp => {
                let params = json!({ "sessionId": theirs, "extensionName": extension, "uri": uri });
                let answer = acp_run::call_acp_run_method(self, "_goose/unstable/resources/read", params).await?;
                answer.pointer("/result/contents/0").or_else(|| answer.get("result")).cloned().unwrap_or(answer)
            }
        };
        let text = |key: &str| answer[key].as_str().map(str::to_owned);
        let content = text("text").map(RemoteContent::Text).or_else(|| text("blob").map(RemoteContent::Base64));
        let content = content.ok_or_else(|| GoosedError::Unreadable("a resource without a content".to_owned()))?;
        let usual = if matches!(content, RemoteContent::Text(_)) { "text/plain" } else { "application/octet-stream" };
        Ok(RemoteFile { mime: text("mimeType").unwrap_or_else(|| usual.to_owned()), content })
    }
}

/// What goose says about a thing that cannot be read goes to the log alone.
pub(super) fn log_unreadable_remote_file(read: Result<Option<RemoteFile>, GoosedError>) -> Option<RemoteFile> {
    read.unwrap_or_else(|trouble| {
        tracing::warn!(%trouble, "goose did not give a thing of a session");
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_hold_colons() {
        let name = "resource:apps:ui://clock/page";
        let rest = name.strip_prefix(RESOURCE_PREFIX).and_then(|rest| rest.split_once(':'));
        assert_eq!(rest, Some(("apps", "ui://clock/page")));
    }
}
