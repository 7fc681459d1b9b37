//! What divvy's HTTP servers share: [`admit`] decides who may ask, and
//! [`serve`] bounds what clients can cost.

mod guard;
mod line;
mod server;
mod token;

pub use guard::{Guard, Trusted, Who, admit};
pub use server::serve;
pub use token::{NoRandomness, Token};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// An answer that says why there is no other.
pub fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({"error": why}))).into_response()
}
