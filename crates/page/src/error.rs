// SPDX-License-Identifier: MIT OR Apache-2.0
//! An error as every address of the API answers it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// The status, and what is wrong as JSON.
pub fn error_answer(status: StatusCode, error: String) -> Response {
    (status, Json(fatpath_api::Error { error })).into_response()
}
