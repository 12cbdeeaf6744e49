//! `GET /` for a person: the built page if `web/dist` was there when the server was built, else a small one of our own.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName, HeaderValue};
use http::{StatusCode, Uri};

use crate::error;

/// The files of the built page; none if it was not built.
const BUILT_PAGE: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built_page.rs"));

/// The small page, without a framework.
const SMALL_PAGE: &[(&str, &[u8])] = &[
    ("index.html", include_bytes!("page/index.html")),
    ("assets/page.css", include_bytes!("page/page.css")),
    ("assets/page.js", include_bytes!("page/page.js")),
];

/// Nothing but this server's own files runs or is loaded, nothing in a text becomes a script, and no other page frames it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; media-src data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file in which the page shows what an agent made, an app or an HTML artifact.
const FRAME: &str = "frame.html";

/// What is shown there runs its own scripts, in an origin that is nobody's, and reaches nothing: not the page, not this
/// server, not the network.
const FRAME_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data: blob:; media-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'self'; sandbox allow-scripts";

/// Headers of every file of the page.
const PAGE_HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    // An address may hold a ticket.
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Whether the full page was there when the server was built.
pub fn is_page_built() -> bool {
    !BUILT_PAGE.is_empty()
}

/// `GET /`.
pub async fn get_page() -> Response {
    page_file("index.html").unwrap_or_else(missing_page)
}

/// `GET /assets/…`.
pub async fn get_page_asset(Path(path): Path<String>) -> Response {
    page_file(&format!("assets/{path}")).unwrap_or_else(missing_page)
}

/// `GET /licences`: what the built page contains, and under which terms. The small one contains nothing of others.
pub async fn get_page_licences() -> Response {
    page_file("licences.html").unwrap_or_else(missing_page)
}

/// A file beside the page that keeps its name: icon, manifest, service worker, frame.
pub async fn get_page_root_file(uri: Uri) -> Response {
    page_file(uri.path().trim_start_matches('/')).unwrap_or_else(missing_page)
}

fn missing_page() -> Response {
    error::problem_response(StatusCode::NOT_FOUND, "not_found", "the page has no such file")
}

fn page_file(name: &str) -> Option<Response> {
    let files = if BUILT_PAGE.is_empty() { SMALL_PAGE } else { BUILT_PAGE };
    let (_, bytes) = files.iter().find(|(known, _)| *known == name)?;
    let mut response = Body::from(Bytes::from_static(bytes)).into_response();
    let headers = response.headers_mut();
    for (name, value) in PAGE_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if name == FRAME {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FRAME_POLICY));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page_content_type(name)));
    // The built page names its assets by what is in them; ours keep their names over versions.
    let lasting = !BUILT_PAGE.is_empty() && name.starts_with("assets/");
    let cache = if lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    Some(response)
}

/// What a file is, by its name.
pub fn page_content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "jpg" | "jpeg" => "image/jpeg",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
