//! What is asked, answered.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use divvy_core::Invalid;
use divvy_http::refusal;
use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use serde_json::json;

use crate::engine::Refusal;
use crate::playground::Playground;
use crate::scenario::{Listed, builtins};
use crate::stage::Stage;

/// How often a connection without news is kept alive.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Events of the timeline that are given at once.
const EVENTS_MAX: u64 = 10_000;
/// Where a browser that comes back says what it has seen.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

type Asked = Result<Query<BTreeMap<String, String>>, QueryRejection>;

/// Why there is no answer, as an answer.
pub(super) fn refused(why: &Refusal) -> Response {
    let status = match why {
        Refusal::Bad(_) => StatusCode::BAD_REQUEST,
        Refusal::Missing(_) => StatusCode::NOT_FOUND,
        Refusal::Conflict(_) => StatusCode::CONFLICT,
    };
    refusal(status, &why.to_string())
}

/// Asks the stage where that cannot keep other connections waiting.
pub(super) async fn ask<T: Send + 'static>(
    playground: Playground,
    question: impl FnOnce(&mut dyn Stage) -> T + Send + 'static,
) -> T {
    let asked = tokio::task::spawn_blocking(move || playground.with(question));
    asked.await.expect("questions do not panic")
}

fn answer<T: Serialize>(answered: Result<T, Refusal>) -> Response {
    match answered {
        Ok(answer) => Json(answer).into_response(),
        Err(why) => refused(&why),
    }
}

pub(super) async fn snapshot(State(playground): State<Playground>) -> Response {
    let asked = tokio::task::spawn_blocking(move || playground.with_told(|e| e.snapshot()));
    Json(asked.await.expect("snapshots do not panic")).into_response()
}

/// A whole number of the query, if it is there.
fn number(
    asked: &mut BTreeMap<String, String>,
    field: &'static str,
    most: u64,
) -> Result<Option<u64>, Refusal> {
    let Some(text) = asked.remove(field) else {
        return Ok(None);
    };
    match text.parse::<u64>().ok().filter(|number| *number <= most) {
        Some(number) => Ok(Some(number)),
        None => {
            let rule = format!("must be a whole number in 0..={most}");
            Err(Invalid::new(field, text, rule).into())
        }
    }
}

fn query(asked: Asked) -> Result<BTreeMap<String, String>, Refusal> {
    let asked = asked.map_err(|error| Refusal::Bad(format!("query: {error}")))?;
    Ok(asked.0)
}

fn finish(asked: &BTreeMap<String, String>) -> Result<(), Refusal> {
    match asked.keys().next() {
        None => Ok(()),
        Some(unknown) => Err(Invalid::new("query", unknown, "is not known here").into()),
    }
}

pub(super) async fn events(
    State(playground): State<Playground>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    match after(asked, &headers) {
        Ok(after) => {
            let alive = KeepAlive::new().interval(ALIVE_EVERY).text("here");
            Sse::new(followed(&playground, after))
                .keep_alive(alive)
                .into_response()
        }
        Err(why) => refused(&why),
    }
}

fn after(asked: Asked, headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut asked = query(asked)?;
    let after = number(&mut asked, "after", u64::MAX - 1)?;
    finish(&asked)?;
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        return Ok(after);
    };
    let text = last.to_str().unwrap_or("").to_owned();
    let mut last = BTreeMap::from([("last-event-id".to_owned(), text)]);
    number(&mut last, "last-event-id", u64::MAX - 1)
}

fn followed(
    playground: &Playground,
    after: Option<u64>,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    unfold(playground.follow(after), async |mut follower| {
        let message = follower.next().await?;
        let event = Event::default().event(message.event).data(&message.data);
        let event = match message.sequence {
            Some(sequence) => event.id(sequence.to_string()),
            None => event,
        };
        Some((Ok(event), follower))
    })
}

pub(super) async fn timeline(State(playground): State<Playground>, asked: Asked) -> Response {
    let read = || -> Result<_, Refusal> {
        let mut asked = query(asked)?;
        let after = number(&mut asked, "after", u64::MAX - 1)?.unwrap_or(0);
        let limit = number(&mut asked, "limit", EVENTS_MAX)?.unwrap_or(EVENTS_MAX);
        let format = asked.remove("format");
        finish(&asked)?;
        Ok((after, limit as usize, format))
    };
    let (after, limit, format) = match read() {
        Ok(read) => read,
        Err(why) => return refused(&why),
    };
    match format.as_deref() {
        None | Some("json") => {
            let (events, oldest) = ask(playground, move |e| e.events(after, limit)).await;
            Json(json!({"events": events, "oldest": oldest})).into_response()
        }
        Some("csv") => {
            let text = ask(playground, |e| e.timeline().to_csv()).await;
            file("text/csv; charset=utf-8", "divvy-timeline.csv", text)
        }
        Some("jsonl") => {
            let text = ask(playground, |e| e.timeline().to_json_lines()).await;
            file("application/x-ndjson", "divvy-timeline.jsonl", text)
        }
        Some(other) => {
            let rule = "must be one of json, csv, jsonl";
            refused(&Invalid::new("format", other, rule).into())
        }
    }
}

fn file(kind: &'static str, name: &str, text: String) -> Response {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let disposition = disposition.expect("names of files are plain");
    let kind = HeaderValue::from_static(kind);
    (
        [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, disposition)],
        text,
    )
        .into_response()
}

pub(super) async fn trace(State(playground): State<Playground>) -> Response {
    let lines = match ask(playground, |e| e.trace()).await {
        Ok(lines) => lines,
        Err(why) => return refused(&why),
    };
    let mut text = lines.join("\n");
    text.push('\n');
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(CONTENT_TYPE, kind)], text).into_response()
}

pub(super) async fn partition(
    State(playground): State<Playground>,
    name: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(name)) = name else {
        return refusal(StatusCode::BAD_REQUEST, "the partition is not UTF-8");
    };
    let ranking = playground.ranking(&name).await;
    answer(ask(playground, move |e| e.explain_partition(&name, ranking)).await)
}

/// The number of a worker in a path.
fn worker_number(number: Result<Path<String>, PathRejection>) -> Result<usize, Refusal> {
    let Path(text) = number.map_err(|_error| Refusal::Bad("the worker is not UTF-8".into()))?;
    text.parse().map_err(|_error| {
        let rule = "must be the number of a worker";
        Invalid::new("worker", &text, rule).into()
    })
}

pub(super) async fn worker(
    State(playground): State<Playground>,
    number: Result<Path<String>, PathRejection>,
) -> Response {
    match worker_number(number) {
        Ok(number) => answer(ask(playground, move |e| e.explain_worker(number)).await),
        Err(why) => refused(&why),
    }
}

pub(super) async fn what_if(
    State(playground): State<Playground>,
    number: Result<Path<String>, PathRejection>,
) -> Response {
    match worker_number(number) {
        Ok(number) => {
            let desired = playground.desired_without(number).await;
            answer(ask(playground, move |e| e.what_if(number, desired)).await)
        }
        Err(why) => refused(&why),
    }
}

pub(super) async fn scenarios() -> Response {
    let scenarios: Vec<Listed> = builtins().iter().map(Listed::from).collect();
    Json(json!({ "scenarios": scenarios })).into_response()
}
