//! Points in time, for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// A moment of the wall clock as `2026-11-16 14:03:22`.
pub(crate) fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (year, month, day) = date(seconds / DAY);
    let second = seconds % DAY;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}",
        second % 60
    )
}

/// The time of a day as `14:03:22Z`.
pub(crate) fn time_of_day(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since.as_secs() % DAY;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// How long ago that was, roughly.
pub(crate) fn ago(unix_ms: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(unix_ms);
    match SystemTime::now().duration_since(at) {
        Ok(span) => format!("{} ago", rough(span)),
        // Clocks differ.
        Err(_) => "just now".to_owned(),
    }
}

/// A span in its largest unit.
pub(crate) fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / DAY),
    }
}

/// Year, month and day of a day since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        let is_fourth = year.is_multiple_of(4) && !year.is_multiple_of(100);
        is_fourth || year.is_multiple_of(400)
    };
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        // A record from far in the future would be counted for ever.
        if left < length || year == 9999 {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in (1..).zip(months) {
        if left < length {
            return (year, month, left + 1);
        }
        left -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_399_000), "2000-02-28 23:59:59");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_794_832_202_500), "2026-11-16 12:30:02");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00");
        assert_eq!(&utc(u64::MAX)[..10], "9999-12-31");
    }

    #[test]
    fn spans_have_one_unit() {
        let shown = [0, 119, 120, 7199, 7200, 172_799, 172_800];
        let shown = shown.map(|seconds| rough(Duration::from_secs(seconds)));
        assert_eq!(
            shown,
            ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]
        );
    }
}
