//! Connections, and what each of them may cost.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::line::{Answer, Line, Lines};

/// Connections at once. Another one takes the place of the one whose client
/// has been waited for longest; where all have asked something, it waits.
const CONNECTIONS_MAX: usize = 128;
/// How long the head of a request may take, and a connection be idle.
const HEAD: Duration = Duration::from_secs(5);
/// Largest head of a request: in bytes, and in fields.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEAD_FIELDS_MAX: usize = 64;
/// How long a connection that is asked to end has for its last answer.
const LAST_ANSWER: Duration = Duration::from_secs(5);
/// How long to wait when the system has no connection for us.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers for ever. A connection is asked to end when it has lasted so long.
pub async fn serve(listener: TcpListener, router: Router, lasts: Duration) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let lines = Arc::new(Lines::default());
    let mut number = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _from)) => {
                let slot = slot(&slots, &lines).await;
                number += 1;
                let line = lines.add(number);
                let service = Attended {
                    router: TowerToHyperService::new(router.clone()),
                    line: Arc::clone(&line),
                };
                let lines = Arc::clone(&lines);
                tokio::spawn(async move {
                    tokio::select! {
                        () = converse(stream, service, lasts) => {}
                        () = line.is_given_up() => {}
                    }
                    lines.remove(number);
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "no connection");
                sleep(PAUSE).await;
            }
        }
    }
}

/// A place for one connection more.
async fn slot(slots: &Arc<Semaphore>, lines: &Lines) -> OwnedSemaphorePermit {
    loop {
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return slot;
        }
        lines.give_up_one();
        if let Ok(Ok(slot)) = timeout(PAUSE, Arc::clone(slots).acquire_owned()).await {
            return slot;
        }
    }
}

/// Answers what comes over one connection, and knows while it does.
#[derive(Debug)]
struct Attended {
    router: TowerToHyperService<Router>,
    line: Arc<Line>,
}

impl Service<Request<Incoming>> for Attended {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let line = Arc::clone(&self.line);
        request.extensions_mut().insert(Arc::clone(&line));
        let answer = self.router.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            line.asked();
            Ok(answer.map(|body| Body::new(Answer::new(body, line))))
        })
    }
}

/// One connection. What goes wrong with it is its client's business.
async fn converse(stream: TcpStream, service: Attended, lasts: Duration) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEAD_FIELDS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(lasts) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _late = timeout(LAST_ANSWER, connection).await;
}
