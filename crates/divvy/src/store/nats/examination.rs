//! What a server and its bucket say of themselves, for whoever examines them.

use divvy_core::store::StoreError;
use tokio::time::{Instant, timeout_at};

use super::bucket::Bucket;
use super::fault::code;
use super::link::Link;
use super::{read_plan, version};
use crate::doctor::{Finding, REACHED, clocks};
use crate::store::VALUE_BYTES_MAX;
use crate::store::clock::unix_ms;
use crate::store::settings::StoreSettings;
use crate::store::url::StoreUrl;

/// Looks at a server and the bucket, whether they will do or not.
pub(crate) async fn examine(url: &StoreUrl, settings: &StoreSettings) -> Vec<Finding> {
    let deadline = Instant::now() + settings.connect_timeout;
    let unanswered = || StoreError::unavailable(format_args!("{url} does not answer"));
    let looked = timeout_at(deadline, look(url, settings, deadline)).await;
    match looked.unwrap_or_else(|_elapsed| Err(unanswered())) {
        Ok(findings) => findings,
        Err(error) => vec![Finding::failed(REACHED, &error)],
    }
}

async fn look(
    url: &StoreUrl,
    settings: &StoreSettings,
    deadline: Instant,
) -> Result<Vec<Finding>, StoreError> {
    let plan = read_plan(url, settings).await?;
    let link = Link::connect(&plan).await?;
    let server = link.server();
    let mut findings = Vec::new();
    findings.push(match version::check(&server.version, settings.replicas) {
        Ok(()) => Finding::good("server", format!("nats-server {}", server.version)),
        Err(error) => Finding::bad("server", error.to_string(), "install a newer one"),
    });
    if !server.jetstream {
        let advice = "start it with -js, or with a jetstream block in its configuration";
        findings.push(Finding::bad("jetstream", "it is not enabled", advice));
        return Ok(findings);
    }
    findings.push(Finding::good("jetstream", "enabled"));
    findings.push(payload(link.message_bytes_max()));
    findings.extend(bucket(&link, settings, deadline).await);
    Ok(findings)
}

fn payload(bytes: usize) -> Finding {
    let found = format!("max_payload is {} KiB", bytes >> 10);
    match bytes / 2 >= VALUE_BYTES_MAX {
        true => Finding::good("payload", found),
        false => {
            let advice =
                "raise max_payload to 1MB: large assignments are then written in fewer parts";
            Finding::note("payload", found, advice)
        }
    }
}

async fn bucket(link: &Link, settings: &StoreSettings, deadline: Instant) -> Vec<Finding> {
    let bucket = Bucket::new(settings);
    let name = &bucket.name;
    let asked_ms = unix_ms();
    let info = match bucket.info(link, deadline).await {
        Ok(info) => info,
        Err(fault) if fault.is_api(code::NO_STREAM) => {
            let found =
                format!("bucket '{name}' was not there: it is made as the first worker would");
            return vec![Finding::good("bucket", found), durability(settings)];
        }
        Err(fault) => {
            let error = fault.of_read(format_args!("bucket '{name}'"));
            return vec![Finding::failed("bucket", &error)];
        }
    };
    let answered_ms = unix_ms();
    let copies = settings.replicas;
    let mut findings = vec![match bucket.check(&info.config) {
        Ok(()) => Finding::good("bucket", format!("bucket '{name}', {copies} of it")),
        Err(error) => {
            let advice = "edit it by 'nats stream edit', or delete it while no worker runs: the \
                          next one makes it";
            Finding::bad("bucket", error.to_string(), advice)
        }
    }];
    findings.push(durability(settings));
    let time = info.ts.as_deref().and_then(crate::store::clock::parsed_ms);
    findings.extend(time.map(|theirs| clocks(asked_ms, theirs, answered_ms)));
    findings
}

/// What a power loss takes, which the server does not tell.
fn durability(settings: &StoreSettings) -> Finding {
    if settings.replicas > 1 {
        return Finding::good("persistence", "what a majority of servers has");
    }
    let found = "one copy, acknowledged before it is on the disk unless sync_interval is always";
    let advice = "set 'jetstream { sync_interval: always }', or take three replicas, where a power \
                  loss must take nothing";
    Finding::note("persistence", found, advice)
}
