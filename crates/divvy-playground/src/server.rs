//! The page, and the interface behind it, over HTTP.

mod answers;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use divvy_http::{Guard, Token, Who, admit, refusal, serve};
use tokio::net::TcpListener;

use crate::page;
use crate::playground::Playground;
use crate::scenario::SCENARIO_BYTES_MAX;

/// Largest body of an action, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// How long a connection may last before it is asked to end: pages follow for
/// as long as they are open, and come back by themselves.
const CONNECTION: Duration = Duration::from_secs(6 * 3600);
/// A page takes nothing from anywhere else.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// What there is, for who has mistyped it.
const NO_SUCH_PATH: &str = "no such path: docs/playground.md lists those below /api/v1";

/// Serves a playground for ever; to whoever is on this machine, or has the
/// token.
pub async fn listen(listener: TcpListener, playground: Playground, token: Option<Token>) {
    let who = match token {
        Some(token) => Who::Token(Arc::new(token)),
        None => Who::Loopback,
    };
    let guard = Guard {
        who,
        open: &page::PATHS,
        body_bytes_max: SCENARIO_BYTES_MAX as u64,
    };
    serve(listener, routes(playground, guard), CONNECTION).await;
}

fn routes(playground: Playground, guard: Guard) -> Router {
    let upload = DefaultBodyLimit::max(SCENARIO_BYTES_MAX);
    let mut router = Router::new()
        .route("/api/v1/snapshot", get(answers::snapshot))
        .route("/api/v1/trace", get(answers::trace))
        .route("/api/v1/partitions/{*name}", get(answers::partition))
        .route("/api/v1/workers/{number}", get(answers::worker))
        .route("/api/v1/workers/{number}/what-if", get(answers::what_if))
        .route("/api/v1/actions", post(requests::act))
        .route(
            "/api/v1/scenarios",
            get(answers::scenarios).merge(post(requests::upload).layer(upload)),
        )
        .route("/api/v1/scenarios/{name}/start", post(requests::start))
        .layer(middleware::from_fn(answers::no_query))
        .route("/api/v1/events", get(answers::events))
        .route("/api/v1/timeline", get(answers::timeline))
        .layer(Extension(answers::Seats::default()));
    for file in &page::FILES {
        router = router.route(file.0, get(async move || page_file(file)));
    }
    router
        .fallback(async || refusal(StatusCode::NOT_FOUND, NO_SUCH_PATH))
        .method_not_allowed_fallback(async || {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "not this method")
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(guard, admit))
        .with_state(playground)
}

fn page_file((_, kind, text): &page::File) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    (headers, *text).into_response()
}
