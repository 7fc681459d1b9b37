//! Who may ask: on loopback whoever is on this machine and no web page, else
//! whoever has the token.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, HOST, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

use crate::line::Line;
use crate::refusal;
use crate::token::Token;

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// Where browsers say whether a page of another site asks.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who may ask.
#[derive(Debug, Clone)]
pub enum Who {
    /// Whoever is on this machine.
    Loopback,
    /// Whoever has this token.
    Token(Arc<Token>),
}

/// Which questions are answered.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Of whom.
    pub who: Who,
    /// Paths that are answered without a token, too, to somebody who is not
    /// [`Trusted`].
    pub open: &'static [&'static str],
    /// Largest body of a request, in bytes.
    pub body_bytes_max: u64,
}

/// Whether whoever asks has shown that it may know everything.
#[derive(Debug, Clone, Copy)]
pub struct Trusted(pub bool);

type Refused = (StatusCode, &'static str);

const TOO_LARGE: Refused = (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");

/// Lets questions through that may be asked, and bounds them.
pub async fn admit(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let checked = match guard.check(&request) {
        Ok(trusted) => whole(&mut request, guard.body_bytes_max)
            .await
            .map(|()| trusted),
        refused => refused,
    };
    let mut response = match checked {
        Ok(trusted) => {
            request.extensions_mut().insert(trusted);
            let answer = timeout(ANSWER, next.run(request)).await;
            answer.unwrap_or_else(|_elapsed| {
                refusal(StatusCode::SERVICE_UNAVAILABLE, "no answer in time")
            })
        }
        Err((status, why)) => refusal(status, why),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    if response.status() == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    response.into_response()
}

/// Reads all of a request: nothing is done, and no place kept, for one that
/// does not come to its end.
async fn whole(request: &mut Request, bytes_max: u64) -> Result<(), Refused> {
    let body = std::mem::take(request.body_mut());
    let late = (StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
    let bytes = timeout(BODY, read(body, bytes_max)).await;
    *request.body_mut() = bytes.unwrap_or(Err(late))?.into();
    if let Some(line) = request.extensions().get::<Arc<Line>>() {
        line.asked();
    }
    Ok(())
}

async fn read(mut body: Body, bytes_max: u64) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let unreadable = (StatusCode::BAD_REQUEST, "the body cannot be read");
        let frame = frame.map_err(|_error| unreadable)?;
        // Trailers say nothing that is asked for.
        let data = frame.into_data().unwrap_or_default();
        if (bytes.len() + data.len()) as u64 > bytes_max {
            return Err(TOO_LARGE);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

impl Guard {
    fn check(&self, request: &Request) -> Result<Trusted, Refused> {
        let trusted = self.check_who(request)?;
        check_page(request.method(), request.headers())?;
        if request.body().size_hint().lower() > self.body_bytes_max {
            return Err(TOO_LARGE);
        }
        Ok(trusted)
    }

    fn check_who(&self, request: &Request) -> Result<Trusted, Refused> {
        let headers = request.headers();
        match &self.who {
            Who::Loopback => {
                let named = [
                    header(headers, &HOST),
                    request.uri().authority().map(Authority::as_str),
                ];
                let mut named = named.into_iter().flatten().peekable();
                let is_here = named.peek().is_some() && named.all(names_loopback);
                match is_here {
                    true => Ok(Trusted(true)),
                    // A page of another site may have given its name our address.
                    false => Err((StatusCode::FORBIDDEN, "the host must be a loopback address")),
                }
            }
            Who::Token(token) => {
                let presented = header(headers, &AUTHORIZATION).and_then(bearer);
                match presented.map(|presented| token.is(presented.as_bytes())) {
                    Some(true) => Ok(Trusted(true)),
                    None if self.open.contains(&request.uri().path()) => Ok(Trusted(false)),
                    _ => Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong")),
                }
            }
        }
    }
}

/// A header that is there once, as text.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().unwrap_or("");
    // Two of them are none that can be relied on.
    Some(if values.next().is_some() { "" } else { value })
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim())
}

fn names_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let has_user = authority.as_str().contains('@');
    let name = authority.host().trim_matches(['[', ']']);
    let is_loopback = name
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    !has_user && (is_loopback || name.eq_ignore_ascii_case("localhost"))
}

/// Nothing is changed because a page of another site says so.
fn check_page(method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
    if method.is_safe() {
        return Ok(());
    }
    let is_foreign_site =
        header(headers, &FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_foreign_origin = header(headers, &ORIGIN).is_some_and(|origin| {
        let host = header(headers, &HOST).unwrap_or("");
        let at = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        at.is_none_or(|at| !at.eq_ignore_ascii_case(host))
    });
    match is_foreign_site || is_foreign_origin {
        true => Err((StatusCode::FORBIDDEN, "a page of another site asks")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_what_only_this_machine_can_be() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9",
            "127.9.9.9",
            "[::1]:80",
        ] {
            assert!(names_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "evil@localhost",
            "localhost localhost",
        ] {
            assert!(!names_loopback(host), "{host}");
        }
    }

    #[test]
    fn pages_change_only_what_they_came_from() {
        let checked = |pairs: &[(&HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:80"));
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            check_page(&Method::POST, &headers).is_ok()
        };
        assert!(checked(&[]));
        assert!(checked(&[(&ORIGIN, "http://localhost:80")]));
        assert!(checked(&[(&FETCH_SITE, "same-origin")]));
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://evil.example",
            "file://",
        ] {
            assert!(!checked(&[(&ORIGIN, origin)]), "{origin}");
        }
        assert!(!checked(&[(&FETCH_SITE, "cross-site")]));
        assert!(!checked(&[(&FETCH_SITE, "same-site")]));
        let twice = [(&ORIGIN, "http://localhost:80"), (&ORIGIN, "null")];
        assert!(!checked(&twice));
    }
}
