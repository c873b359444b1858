// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a handler of the API answers, and how it fails.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use fatpath_api::Endpoint;
use fatpath_page::error_answer;
use fatpath_policy::Refused;

/// Anything that a handler could not do.
pub(crate) struct Failure(StatusCode, String);

impl Failure {
    pub(crate) fn new(status: StatusCode, error: String) -> Failure {
        Failure(status, error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        match error.downcast_ref::<Refused>() {
            Some(refused) => Failure(StatusCode::UNPROCESSABLE_ENTITY, refused.to_string()),
            None => Failure(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")),
        }
    }
}

impl From<fatpath_kernel::KernelError> for Failure {
    fn from(error: fatpath_kernel::KernelError) -> Failure {
        anyhow::Error::from(error).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let is_busy = self.0 == StatusCode::SERVICE_UNAVAILABLE;
        let wait = is_busy.then_some([(RETRY_AFTER, "10")]);
        (wait, error_answer(self.0, self.1)).into_response()
    }
}

/// A value as JSON.
pub(crate) type Answer<T> = Result<Json<T>, Failure>;

/// What an endpoint answers.
pub(crate) type AnswerTo<E> = Answer<<E as Endpoint>::Answer>;
