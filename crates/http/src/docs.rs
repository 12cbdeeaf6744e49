//! The documentation: its Markdown as it is, and the addresses under which the page shows it.

use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use http::{StatusCode, header};

use crate::error;

/// The pages of `docs`, by their path there.
const DOCS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// `GET /docs`.
pub async fn show_docs() -> Redirect {
    Redirect::to("/#/docs")
}

/// `GET /docs/api`.
pub async fn show_api() -> Redirect {
    Redirect::to("/#/docs/api")
}

/// `GET /docs/….md`.
pub async fn get_doc(Path(path): Path<String>) -> Response {
    match DOCS.iter().find(|(name, _)| *name == path) {
        Some((_, text)) => ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], *text).into_response(),
        None => error::problem_response(StatusCode::NOT_FOUND, "not_found", "the documentation has no such page"),
    }
}
