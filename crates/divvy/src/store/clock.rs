//! The clocks of this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use divvy_core::Moment;

/// Now, on the clock that every process of this machine shares, that nobody
/// can set and that counts the time of a suspend.
pub(crate) fn boottime() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Moment::from_origin(Duration::new(seconds, nanos))
}

/// Milliseconds of the wall clock: for the floor of tokens only, never for
/// expiry.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970 of a time as `2026-11-17T08:03:22.123456Z`; nothing
/// if it is in another form.
#[cfg(feature = "nats")]
pub(crate) fn parsed_ms(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let (since, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = since / 4 - since / 100 + since / 400;
    let days = since * 365 + leap_days + (month * 153 + 2) / 5 + day - DAYS_BEFORE_1970;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let ms: u64 = digits.parse().ok()?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// From the first of March of year 0, with one more for days that count from 1.
#[cfg(feature = "nats")]
const DAYS_BEFORE_1970: u64 = 719_469;

#[cfg(test)]
#[cfg(feature = "nats")]
mod tests {
    use super::parsed_ms;

    #[test]
    fn times_are_read_in_the_form_that_servers_write() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:34:56.789Z", Some(951_827_696_789)),
            ("2000-03-01T00:00:00.5Z", Some(951_868_800_500)),
            ("2026-11-17T20:12:03.123456789Z", Some(1_794_946_323_123)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400_000)),
            ("2026-11-17T20:12:03+01:00", None),
            ("2026-13-17T20:12:03Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("now", None),
        ] {
            assert_eq!(parsed_ms(text), ms, "{text}");
        }
    }
}
