//! What a server says of itself, for whoever examines it.

use std::time::Duration;

use ::redis::Value;
use divvy_core::store::StoreError;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::reply;
use super::server::Server;
use crate::doctor::{Finding, REACHED, clocks};
use crate::store::clock::unix_ms;
use crate::store::settings::StoreSettings;
use crate::store::url::StoreUrl;

/// Memory above this share of what the server may have is worth a word.
const FULL_PERCENT: u64 = 80;
/// In this order: a server that starts with an append-only file for the first
/// time does not read the snapshot that it has.
const APPEND: &str =
    "run CONFIG SET appendonly yes, and then set 'appendonly yes' in redis.conf, so that it stays";

/// Looks at a server, whether it will do or not.
pub(crate) async fn examine(url: &StoreUrl, settings: &StoreSettings) -> Vec<Finding> {
    let looking = look(url, settings);
    let looked = timeout(settings.connect_timeout, looking).await;
    let unanswered = || StoreError::unavailable(format_args!("{url} does not answer"));
    match looked.unwrap_or_else(|_elapsed| Err(unanswered())) {
        Ok(findings) => findings,
        Err(error) => vec![Finding::failed(REACHED, &error)],
    }
}

async fn look(url: &StoreUrl, settings: &StoreSettings) -> Result<Vec<Finding>, StoreError> {
    let endpoint = Endpoint::new(url, settings)?;
    let connected = endpoint.connect(None).await?;
    let mut connection = connected.connection;
    let driver = tokio::spawn(connected.driver);
    let server = Server::ask(&mut connection).await;
    let asked_ms = unix_ms();
    let time = connection.send_packed_command(&::redis::cmd("TIME")).await;
    let answered_ms = unix_ms();
    driver.abort();
    let server = server.map_err(|error| endpoint.place_it(&error))?;
    let mut findings = said(&server);
    findings.push(match time.ok().as_ref().and_then(milliseconds) {
        Some(theirs) => clocks(asked_ms, theirs, answered_ms),
        None => {
            let advice = "allow TIME, which the scripts need: docs/operating.md has the templates";
            Finding::bad("clock", "the server does not tell its time", advice)
        }
    });
    Ok(findings)
}

/// What the server's own words mean.
fn said(server: &Server) -> Vec<Finding> {
    let misfits = server.misfits();
    let judged =
        |check: &'static str, good: String| match misfits.iter().find(|it| it.check == check) {
            Some(misfit) => Finding::bad(check, &misfit.why, misfit.remedy),
            None => Finding::good(check, good),
        };
    let mut findings = vec![judged("server", server.title.clone())];
    findings.push(match server.check_writable() {
        Err(error) => Finding::bad("role", error.to_string(), "name the primary"),
        Ok(()) => judged("role", "one server, or a primary".to_owned()),
    });
    findings.push(judged("eviction", "noeviction".to_owned()));
    findings.push(match server.forgetting() {
        Some(words) => Finding::note("persistence", words, APPEND),
        None if server.is_append_only() => Finding::good("persistence", "append-only file"),
        None => {
            let found = "snapshots: a restart loses what came after the last";
            Finding::note("persistence", found, APPEND)
        }
    });
    findings.push(memory(server));
    findings
}

fn memory(server: &Server) -> Finding {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let (used, most) = server.memory();
    let Some(most) = most else {
        let found = format!("{} MiB used, without a limit", mib(used));
        return Finding::good("memory", found);
    };
    let found = format!("{} of {} MiB used", mib(used), mib(most));
    match used.saturating_mul(100) > most.saturating_mul(FULL_PERCENT) {
        false => Finding::good("memory", found),
        true => {
            let advice = "raise maxmemory, or give other data a server of its own: a full server \
                          refuses new leases and records";
            Finding::note("memory", found, advice)
        }
    }
}

/// The server's time, which it gives as seconds and microseconds.
fn milliseconds(reply: &Value) -> Option<u64> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let number = |at: usize| -> Option<u64> { reply::text(parts.get(at)?)?.parse().ok() };
    let time = Duration::from_secs(number(0)?) + Duration::from_micros(number(1)?);
    u64::try_from(time.as_millis()).ok()
}
