//! Connections, and what each of them may cost.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at once; others wait.
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
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _from)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, router, lasts).await;
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

/// One connection. What goes wrong with it is its client's business.
async fn converse(stream: TcpStream, router: Router, lasts: Duration) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEAD_FIELDS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = sleep(lasts) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _late = timeout(LAST_ANSWER, connection).await;
}
