//! Where a database is or would be, for whoever examines it.

use std::path::Path;

use super::place::Place;
use crate::doctor::{Finding, REACHED};
use crate::store::url::StoreUrl;

/// Less room than this on the disk is worth a word.
const ROOM_BYTES_MIN: u64 = 256 << 20;

/// Looks at the place of a database, whether there is one or not.
pub(crate) fn examine(url: &StoreUrl) -> Vec<Finding> {
    let place = match Place::find(&url.path()) {
        Ok(place) => place,
        Err(error) => return vec![Finding::failed(REACHED, &error)],
    };
    let found = match place.has_database() {
        true => format!("{place}, on a local disk"),
        false => format!("{place} was not there: it is made as the first worker would"),
    };
    let mut findings = vec![Finding::good("place", found)];
    let directory = place.database().parent().unwrap_or_else(|| Path::new("/"));
    if let Ok(disk) = rustix::fs::statvfs(directory) {
        findings.push(room(disk.f_bavail.saturating_mul(disk.f_frsize)));
    }
    findings
}

fn room(bytes: u64) -> Finding {
    let found = format!("{} MiB are free", bytes >> 20);
    match bytes >= ROOM_BYTES_MIN {
        true => Finding::good("room", found),
        false => {
            let advice = "free some: on a full disk nothing is renewed, and all work stops";
            Finding::note("room", found, advice)
        }
    }
}
