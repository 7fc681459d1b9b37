//! What a store takes at most, checked before anything is sent.

use std::time::Duration;

use divvy_core::lease::GROUP_BYTES_MAX;
use divvy_core::store::{
    CHUNK_BYTES_MAX, GroupDocument, Heartbeat, LEASE_NAME_BYTES_MAX, StoreError, StoreErrorKind,
};
use divvy_core::{CONTROL_BYTES_MAX, Invalid};

/// Largest value of a key, in bytes; less where a server takes less.
pub const VALUE_BYTES_MAX: usize = CHUNK_BYTES_MAX;
/// Most entries of one listing.
pub const LIST_MAX: usize = 200_000;
/// Most leases of one call.
pub const BATCH_MAX: usize = 100_000;
/// Shortest time to live of a lease, a session, a heartbeat or a cooldown.
pub const TTL_MIN: Duration = Duration::from_millis(10);
/// Longest time to live.
pub const TTL_MAX: Duration = Duration::from_hours(24);

pub(crate) fn check_value(value: &[u8], bytes_max: usize) -> Result<(), Invalid> {
    if value.len() > bytes_max {
        let rule = format!("must be at most {bytes_max} for this store");
        return Err(Invalid::new("value bytes", value.len(), rule));
    }
    Ok(())
}

pub(crate) fn check_listed(count: usize) -> Result<(), Invalid> {
    if count > LIST_MAX {
        let rule = format!("must be at most {LIST_MAX}");
        return Err(Invalid::new("listed keys", count, rule));
    }
    Ok(())
}

pub(crate) fn check_batch(count: usize) -> Result<(), Invalid> {
    if count > BATCH_MAX {
        let rule = format!("must be at most {BATCH_MAX}");
        return Err(Invalid::new("leases in one call", count, rule));
    }
    Ok(())
}

pub(crate) fn check_ttl(field: &'static str, ttl: Duration) -> Result<(), Invalid> {
    if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
        let rule = format!("must be in {TTL_MIN:?}..={TTL_MAX:?}");
        return Err(Invalid::new(field, format!("{ttl:?}"), rule));
    }
    Ok(())
}

/// What a heartbeat says, as it is stored.
pub(crate) fn checked_beat(heartbeat: &Heartbeat) -> Result<String, StoreError> {
    check_ttl("heartbeat ttl", heartbeat.heartbeat_ttl)?;
    check_ttl("session ttl", heartbeat.session_ttl)?;
    let longest = heartbeat.report.longest_lease;
    if longest > TTL_MAX {
        let rule = format!("must be at most {TTL_MAX:?}");
        return Err(Invalid::new("longest lease", format!("{longest:?}"), rule).into());
    }
    heartbeat.info.to_json().map_err(|error| {
        let text = format_args!("worker info: {error}");
        StoreError::new(StoreErrorKind::Invalid, text)
    })
}

pub(crate) fn check_group(json: &str) -> Result<(), Invalid> {
    if json.len() > GROUP_BYTES_MAX {
        let rule = format!("must be at most {GROUP_BYTES_MAX}");
        return Err(Invalid::new("group document bytes", json.len(), rule));
    }
    Ok(())
}

pub(crate) fn check_wishes(wishes: &str) -> Result<(), Invalid> {
    if wishes.is_empty() || wishes.len() > CONTROL_BYTES_MAX {
        let rule = format!("must be in 1..={CONTROL_BYTES_MAX}");
        return Err(Invalid::new("wishes bytes", wishes.len(), rule));
    }
    Ok(())
}

/// A group as it was read, unless its name is longer than any may be: then
/// somebody else wrote it, and it is passed over. A document that is too long
/// is not: whoever has served that group goes on with the last good one, and
/// says so.
pub(crate) fn readable_group(name: String, json: Option<String>) -> Option<GroupDocument> {
    let fits = name.len() <= LEASE_NAME_BYTES_MAX;
    fits.then_some(GroupDocument { name, json })
}
