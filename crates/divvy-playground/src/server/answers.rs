//! What is asked, answered.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use divvy_core::Invalid;
use divvy_http::refusal;
use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::Refusal;
use crate::playground::Playground;
use crate::scenario::{Listed, builtins};
use crate::stage::Stage;
use crate::timeline::{to_csv, to_json_lines};

/// How often a connection without news is kept alive.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Events of the timeline that are given at once.
const EVENTS_MAX: u64 = 10_000;
/// Followers at once: fewer than connections, so that there is always one left
/// to ask something else.
const FOLLOWERS_MAX: usize = 64;
/// When a follower that found no seat may come back, in seconds.
const SEAT_RETRY: HeaderValue = HeaderValue::from_static("5");
/// Where a browser that comes back says what it has seen.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Seats of followers.
#[derive(Debug, Clone)]
pub(super) struct Seats(Arc<Semaphore>);

impl Default for Seats {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(FOLLOWERS_MAX)))
    }
}

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

/// Refuses a query where nothing is asked by one.
pub(super) async fn no_query(request: Request, next: Next) -> Response {
    let unknown = request.uri().query().filter(|query| !query.is_empty());
    match unknown {
        None => next.run(request).await,
        Some(query) => {
            let field = query.split(['=', '&']).next().unwrap_or(query);
            refused(&Invalid::new("query", field, "is not known here").into())
        }
    }
}

fn finish(asked: &BTreeMap<String, String>) -> Result<(), Refusal> {
    match asked.keys().next() {
        None => Ok(()),
        Some(unknown) => Err(Invalid::new("query", unknown, "is not known here").into()),
    }
}

pub(super) async fn events(
    State(playground): State<Playground>,
    Extension(seats): Extension<Seats>,
    headers: HeaderMap,
    asked: Asked,
) -> Response {
    let after = match after(asked, &headers) {
        Ok(after) => after,
        Err(why) => return refused(&why),
    };
    let Ok(seat) = seats.0.try_acquire_owned() else {
        let why = format!("{FOLLOWERS_MAX} follow already: close a page, or come back later");
        let mut full = refusal(StatusCode::SERVICE_UNAVAILABLE, &why);
        full.headers_mut().insert(RETRY_AFTER, SEAT_RETRY);
        return full;
    };
    let alive = KeepAlive::new().interval(ALIVE_EVERY).text("here");
    Sse::new(followed(&playground, after, seat))
        .keep_alive(alive)
        .into_response()
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

/// What a follower is told, for as long as it has its seat.
fn followed(
    playground: &Playground,
    after: Option<u64>,
    seat: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let told = (playground.follow(after), seat);
    unfold(told, async |(mut follower, seat)| {
        let message = follower.next().await?;
        let event = Event::default().event(message.event).data(&message.data);
        let event = match message.sequence {
            Some(sequence) => event.id(sequence.to_string()),
            None => event,
        };
        Some((Ok(event), (follower, seat)))
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
    let format = format.as_deref().unwrap_or("json");
    if !["json", "csv", "jsonl"].contains(&format) {
        let rule = "must be one of json, csv, jsonl";
        return refused(&Invalid::new("format", format, rule).into());
    }
    let (events, oldest) = ask(playground, move |e| e.events(after, limit)).await;
    match format {
        "csv" => {
            let text = to_csv(&events);
            file("text/csv; charset=utf-8", "divvy-timeline.csv", text)
        }
        "jsonl" => {
            let text = to_json_lines(&events);
            file("application/x-ndjson", "divvy-timeline.jsonl", text)
        }
        _ => Json(json!({"events": events, "oldest": oldest})).into_response(),
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

pub(super) async fn scenarios(State(playground): State<Playground>) -> Response {
    // Where none can be started, there are none.
    let scenarios: Vec<Listed> = match ask(playground, |e| e.takes_scenarios()).await {
        Ok(()) => builtins().iter().map(Listed::from).collect(),
        Err(_) => Vec::new(),
    };
    Json(json!({ "scenarios": scenarios })).into_response()
}
