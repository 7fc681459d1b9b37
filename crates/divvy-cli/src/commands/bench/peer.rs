//! The like of a load by `redis-benchmark`, beside ours.

use std::process::Command;

use divvy::store::{Credentials, StoreKind, StoreSettings, StoreUrl};

use super::key_value::of_clients;
use super::measure::Figure;
use crate::failure::Failure;

const PROGRAM: &str = "redis-benchmark";
/// Commands of one run.
const REQUESTS: u32 = 50_000;

/// Runs it against a Redis without login or encryption: its arguments would
/// show a password to everyone. Where it cannot be run it says why.
pub(super) fn measure(
    url: &StoreUrl,
    settings: &StoreSettings,
    clients: u32,
) -> Result<Vec<Figure>, Failure> {
    if url.kind() != StoreKind::Redis {
        return Ok(Vec::new());
    }
    let text = url.to_string();
    let login = url.has_secret() || settings.credentials != Credentials::default();
    let Some(address) = text.strip_prefix("redis://").filter(|_| !login) else {
        tracing::warn!(
            "{url}: {PROGRAM} is not run beside it: only without a login and encryption, because \
             its arguments would show a password to everyone"
        );
        return Ok(Vec::new());
    };
    let address = address.split('/').next().unwrap_or(address);
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "6379"));
    let host = host.trim_matches(['[', ']']);
    let value = "x".repeat(120);
    let key = "divvy:bench:__rand_int__";
    let set = ["SET", key, &value];
    let renew = ["SET", key, &value, "PX", "30000"];
    let loads: [(String, u32, u32, &[&str]); 3] = [
        (format!("SET, {}", of_clients(1)), 1, 1, &set),
        (format!("SET, {}", of_clients(clients)), clients, 1, &set),
        (
            "SET PX, 1 client, 250 in a pipeline".to_owned(),
            1,
            250,
            &renew,
        ),
    ];
    let each = loads.into_iter();
    each.map(|(load, clients, pipeline, command)| {
        one(host, port, &load, clients, pipeline, command)
    })
    .collect()
}

fn one(
    host: &str,
    port: &str,
    load: &str,
    clients: u32,
    pipeline: u32,
    command: &[&str],
) -> Result<Figure, Failure> {
    let counts = [
        ("-n", REQUESTS.to_string()),
        ("-c", clients.to_string()),
        ("-P", pipeline.to_string()),
        ("-r", "1000".to_owned()),
    ];
    let mut run = Command::new(PROGRAM);
    run.args(["-h", host, "-p", port, "--csv"]);
    for (flag, value) in &counts {
        run.args([*flag, value.as_str()]);
    }
    let output = run.args(command).output().map_err(|error| {
        Failure::Failed(anyhow::Error::new(error).context(format!("{PROGRAM} could not be run")))
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    figure(&text, load).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        Failure::Failed(anyhow::anyhow!(
            "{PROGRAM} printed no figures: {}",
            said.trim()
        ))
    })
}

/// The last line: test, requests per second, and latencies in milliseconds:
/// mean, least, median, 95th and 99th of a hundred, most.
fn figure(csv: &str, load: &str) -> Option<Figure> {
    let line = csv.lines().last()?;
    // The command itself may hold commas; the seven numbers are at the end.
    let mut fields = line
        .rsplit(',')
        .map(|field| field.trim_matches('"').parse::<f64>());
    let mut next = || fields.next().and_then(Result::ok);
    let (max_ms, p99_ms, _p95, p50_ms) = (next()?, next()?, next()?, next()?);
    let (_least, _mean, per_second) = (next()?, next()?, next()?);
    Some(Figure {
        store: PROGRAM.to_owned(),
        load: load.to_owned(),
        per_second,
        p50_ms: Some(p50_ms),
        p99_ms: Some(p99_ms),
        max_ms: Some(max_ms),
        core_share: None,
        per_process: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_end_of_the_last_line() {
        let csv = "\"test\",\"rps\",\"avg\"\n\"SET a,b\",\"63572.79\",\"0.013\",\"0.008\",\"0.015\",\"0.023\",\"0.031\",\"2.271\"\n";
        let figure = figure(csv, "SET").unwrap();
        assert_eq!(
            (figure.per_second, figure.p50_ms, figure.max_ms),
            (63572.79, Some(0.015), Some(2.271))
        );
        assert!(super::figure("nothing", "SET").is_none());
    }
}
