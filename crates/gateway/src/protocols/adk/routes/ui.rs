//! An installed adk web page, served from the folder that `--adk-ui` names, with a configuration of ours.

use std::path::{Component, Path as FilePath};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use gander_http::page::page_content_type;
use gander_wire::adk::AdkRefusal;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;

use super::HandlerResult;
use crate::protocols::adk::AdkState;

/// A larger file is no part of a page.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// `GET /dev-ui`.
pub(crate) async fn redirect_to_ui() -> Response {
    Redirect::temporary("/dev-ui/").into_response()
}

/// `GET /dev-ui/`.
pub(crate) async fn get_ui_index(State(state): State<Arc<AdkState>>) -> HandlerResult {
    ui_file_response(&state, "index.html").await
}

/// `GET /dev-ui/…`.
pub(crate) async fn get_ui_file(State(state): State<Arc<AdkState>>, Path(path): Path<String>) -> HandlerResult {
    match path.as_str() {
        "assets/config/runtime-config.json" => {
            let body = json!({ "backendUrl": "", "telemetry": false });
            Ok(([(CACHE_CONTROL, "no-store")], Json(body)).into_response())
        }
        "config" => Ok(Json(json!({ "logo_text": null, "logo_image_url": null })).into_response()),
        path => ui_file_response(&state, path).await,
    }
}

/// A file inside the folder: no way leads out of it, links included.
async fn ui_file_response(state: &AdkState, path: &str) -> HandlerResult {
    let missing = || AdkRefusal::new(404, "Not Found");
    let folder =
        state.adk.settings().ui.as_ref().ok_or_else(|| AdkRefusal::new(404, "no page: gander serve --adk-ui"))?;
    let inside = |path: &FilePath| path.components().all(|step| matches!(step, Component::Normal(_)));
    if path.contains('\0') || !inside(FilePath::new(path)) {
        return Err(missing().into());
    }
    let (files, folder, name) = (state.services.files.clone(), FilePath::new(folder).to_owned(), path.to_owned());
    let read = tokio::task::spawn_blocking(move || {
        files.open(&folder, &[]).ok().and_then(|page| page.read_plain(&name, MAX_FILE_BYTES).ok())
    });
    let bytes = read.await.ok().flatten().ok_or_else(missing)?;
    Ok(([(CONTENT_TYPE, page_content_type(path))], bytes).into_response())
}
