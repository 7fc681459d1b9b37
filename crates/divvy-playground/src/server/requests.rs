//! What is to be done, done.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use divvy_core::Invalid;
use divvy_http::refusal;
use serde_json::{Value, json};

use super::answers::{ask, refused};
use crate::engine::Refusal;
use crate::fields::{Fields, required};
use crate::playground::Playground;
use crate::scenario::{Scenario, builtin};

pub(super) async fn act(State(playground): State<Playground>, Body(value): Body) -> Response {
    match playground.request(value).await {
        Ok(answer) => Json(answer).into_response(),
        Err(why) => refused(&why),
    }
}

pub(super) async fn upload(State(playground): State<Playground>, Body(value): Body) -> Response {
    // Where nothing can be started, nothing has to be read.
    if let Err(why) = ask(playground.clone(), |stage| stage.takes_scenarios()).await {
        return refused(&why);
    }
    match uploaded(value) {
        Ok(scenario) => begin(playground, scenario).await,
        Err(invalid) => refused(&invalid.into()),
    }
}

fn uploaded(value: Value) -> Result<Scenario, Invalid> {
    let mut fields = Fields::of("body", value)?;
    let text = required("yaml", fields.text("yaml")?)?;
    fields.finish()?;
    Scenario::from_yaml(&text)
}

pub(super) async fn start(
    State(playground): State<Playground>,
    name: Result<Path<String>, PathRejection>,
    Body(value): Body,
) -> Response {
    if let Err(invalid) = Fields::of("body", value).and_then(Fields::finish) {
        return refused(&invalid.into());
    }
    let Ok(Path(name)) = name else {
        return refusal(StatusCode::BAD_REQUEST, "the scenario is not UTF-8");
    };
    match builtin(&name) {
        Some(scenario) => begin(playground, scenario).await,
        None => {
            let invalid = Invalid::new("scenario", name, "is not built in");
            refused(&Refusal::Missing(invalid.to_string()))
        }
    }
}

async fn begin(playground: Playground, scenario: Scenario) -> Response {
    let done = format!("{} starts", scenario.title());
    match ask(playground, move |stage| stage.start(scenario)).await {
        Ok(()) => Json(json!({ "done": done })).into_response(),
        Err(why) => refused(&why),
    }
}

/// The body of a request, which must be JSON and say so: a form of another
/// site's page cannot.
pub(super) struct Body(Value);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let is_json = says_json(request.headers());
        let body = Bytes::from_request(request, state).await;
        if !is_json {
            let why = "the content type must be application/json";
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let bytes = body.map_err(|rejection| {
            let status = rejection.status();
            let why = match status == StatusCode::PAYLOAD_TOO_LARGE {
                true => "the body is too large",
                false => "the body cannot be read",
            };
            refusal(status, why)
        })?;
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            let invalid = Invalid::new("body", error, "must be JSON");
            refused(&invalid.into())
        })?;
        Ok(Self(value))
    }
}

fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or("").trim());
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}
