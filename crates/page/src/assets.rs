// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page's files. What is not in the table does not exist: no request reaches a file system.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// Whether the address is one of the page's own files, which hold nothing of this host.
pub(crate) fn is_asset(path: &str) -> bool {
    find(path).is_some()
}

/// `GET /` and `GET /assets/...`
pub async fn asset(uri: Uri) -> Response {
    let Some((name, bytes)) = find(uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Vite names what is in assets/ by its content.
    let cache = match name.starts_with("/assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    (
        [(CONTENT_TYPE, content_type(name)), (CACHE_CONTROL, cache)],
        *bytes,
    )
        .into_response()
}

fn find(path: &str) -> Option<&'static (&'static str, &'static [u8])> {
    let wanted = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|(name, _)| *name == wanted)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
