//! What is answered, at which path.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Json, Router, middleware};
use divvy_http::{Guard, Trusted, admit, refusal};
use serde_json::{Value, json};

use super::Attended;

/// Largest body of a request, in bytes.
pub(super) const BODY_BYTES_MAX: u64 = 64 * 1024;
/// Paths that probes ask without a token; they are told yes or no.
pub(super) const PROBES: [&str; 2] = ["/healthz", "/readyz"];
/// The text form of metrics.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What there is, for who has mistyped it.
const NO_SUCH_PATH: &str = "no such path: there are /healthz, /readyz, /metrics, /v1/owned, \
                            /v1/explain/PARTITION and /v1/drain";

type Member = State<Arc<dyn Attended>>;

pub(super) fn routes(member: Arc<dyn Attended>, guard: Guard) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/v1/owned", get(owned))
        .route("/v1/explain/{*partition}", get(explain))
        .route("/v1/drain", get(draining).post(drain).delete(undrain))
        .fallback(async || refusal(StatusCode::NOT_FOUND, NO_SUCH_PATH))
        .method_not_allowed_fallback(async || {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "not this method")
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX as usize))
        .layer(middleware::from_fn_with_state(guard, admit))
        .with_state(member)
}

fn answer(status: StatusCode, value: Value) -> Response {
    (status, Json(value)).into_response()
}

/// Yes, or no and, for who may know, why.
fn probe(name: &str, found: Result<(), String>, trusted: Trusted) -> Response {
    match found {
        Ok(()) => answer(StatusCode::OK, json!({name: true})),
        Err(why) if trusted.0 => answer(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({name: false, "why": why}),
        ),
        Err(_why) => answer(StatusCode::SERVICE_UNAVAILABLE, json!({name: false})),
    }
}

async fn healthz(State(member): Member, Extension(trusted): Extension<Trusted>) -> Response {
    probe("healthy", member.health(), trusted)
}

async fn readyz(State(member): Member, Extension(trusted): Extension<Trusted>) -> Response {
    probe("ready", member.readiness(), trusted)
}

async fn metrics(State(member): Member) -> Response {
    ([(CONTENT_TYPE, METRICS)], member.metrics()).into_response()
}

async fn owned(State(member): Member) -> Response {
    answer(StatusCode::OK, member.owned())
}

async fn explain(
    State(member): Member,
    partition: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(partition)) = partition else {
        return refusal(StatusCode::BAD_REQUEST, "the partition is not UTF-8");
    };
    match member.explain(&partition).await {
        Ok(Some(explanation)) => answer(StatusCode::OK, explanation),
        Ok(None) => refusal(StatusCode::NOT_FOUND, "there is no such partition"),
        Err(why) => refusal(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

async fn draining(State(member): Member) -> Response {
    answer(StatusCode::OK, json!({"draining": member.is_draining()}))
}

async fn drain(member: Member) -> Response {
    member.0.drain(true);
    draining(member).await
}

async fn undrain(member: Member) -> Response {
    member.0.drain(false);
    draining(member).await
}
