//! How quickly a store answers, and which settings that is quick enough for.

use std::time::Duration;

use divvy_core::leader::LeaderSettings;
use divvy_core::lease::LeaseSettings;

use super::Finding;

/// A renewal that got no answer is tried again after this part of a lease.
const TRIES_PER_LEASE: u32 = 10;

/// What is asked of a store, and what its answers have to be quick enough for.
pub(super) struct Measure {
    pub(super) check: &'static str,
    pub(super) what: &'static str,
    /// Presets with the lengths of their leases, the shortest first.
    pub(super) presets: [(&'static str, Duration); 3],
}

impl Measure {
    pub(super) fn of_records() -> Self {
        Self {
            check: "latency",
            what: "writes",
            presets: [
                ("fast", LeaderSettings::fast().heartbeat_ttl),
                ("default", LeaderSettings::default().heartbeat_ttl),
                ("calm", LeaderSettings::calm().heartbeat_ttl),
            ],
        }
    }

    pub(super) fn of_leases() -> Self {
        Self {
            check: "latency (lease mode)",
            what: "heartbeats",
            presets: [
                ("fast", LeaseSettings::fast().lease_ttl),
                ("default", LeaseSettings::default().lease_ttl),
                ("rendezgo", LeaseSettings::rendezgo().lease_ttl),
            ],
        }
    }
}

/// What so many answers say, for a lease of this length if one is given. They
/// are as long as `took`, in any order.
pub(super) fn judged(
    measure: &Measure,
    mut took: Vec<Duration>,
    lease: Option<Duration>,
) -> Finding {
    let check = measure.check;
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part).round() as usize];
    let (half, most) = (at(0.5), at(0.99));
    let found = format!(
        "{} take {} (half of them) and {} (99 of 100)",
        measure.what,
        shown(half),
        shown(most)
    );
    if let Some(lease) = lease {
        let bound = lease / TRIES_PER_LEASE;
        let advice = format!(
            "bring the store nearer, or take a lease of at least {}: one of {} wants answers \
             within {}",
            shown(most * TRIES_PER_LEASE),
            shown(lease),
            shown(bound)
        );
        return match most <= bound {
            true => Finding::good(check, found),
            false => Finding::bad(check, found, &advice),
        };
    }
    let fits = measure
        .presets
        .map(|(name, lease)| (name, lease / TRIES_PER_LEASE));
    match fits.iter().position(|(_, bound)| most <= *bound) {
        Some(0) => Finding::good(check, found),
        Some(first) => {
            let names = fits[first..].iter().map(|(name, _)| *name);
            let names: Vec<&str> = names.collect();
            let bound = shown(fits[first - 1].1);
            let advice = format!(
                "take preset {}, or a lease of at least {}: {} wants answers within {bound}",
                names.join(" or "),
                shown(most * TRIES_PER_LEASE),
                fits[first - 1].0
            );
            Finding::note(check, found, &advice)
        }
        None => {
            let advice = format!(
                "bring the store nearer, or take a lease of at least {}: members would lose \
                 shorter ones",
                shown(most * TRIES_PER_LEASE)
            );
            Finding::bad(check, found, &advice)
        }
    }
}

/// A time that people compare, without more digits than it is worth.
fn shown(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    match ms {
        _ if ms < 10.0 => format!("{ms:.1} ms"),
        _ if ms < 10_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.0} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn answers_are_held_against_the_leases_of_all_presets() {
        for (ms, verdict, words) in [
            (1, Verdict::Good, "1.0 ms"),
            (70, Verdict::Good, "70 ms"),
            (71, Verdict::Note, "preset default or calm"),
            (601, Verdict::Note, "preset calm"),
            (1501, Verdict::Bad, "at least 15 s"),
        ] {
            let took = vec![Duration::from_millis(ms); 100];
            let finding = judged(&Measure::of_records(), took, None);
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            let told = format!("{} {}", finding.found, finding.advice.unwrap_or_default());
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn one_slow_answer_of_a_hundred_does_not_count() {
        let mut took = vec![Duration::from_millis(1); 100];
        took[3] = Duration::from_secs(9);
        let finding = judged(&Measure::of_records(), took, None);
        assert_eq!(finding.verdict, Verdict::Good);
    }

    #[test]
    fn a_lease_that_is_named_is_the_one_that_answers_are_held_against() {
        let ms = Duration::from_millis;
        for (took, verdict) in [(1_000, Verdict::Good), (1_001, Verdict::Bad)] {
            let measure = Measure::of_leases();
            let finding = judged(&measure, vec![ms(took); 100], Some(ms(10_000)));
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            assert_eq!(finding.check, "latency (lease mode)");
        }
    }
}
