//! How quickly a store answers, and which settings that is quick enough for.

use std::time::Duration;

use divvy_core::leader::LeaderSettings;

use super::Finding;

/// A renewal that got no answer is tried again after this part of a lease.
const TRIES_PER_LEASE: u32 = 10;

/// What so many answers say. They are as long as `took`, in any order.
pub(super) fn judged(mut took: Vec<Duration>) -> Finding {
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part).round() as usize];
    let (half, most) = (at(0.5), at(0.99));
    let found = format!(
        "writes take {} (half of them) and {} (99 of 100)",
        shown(half),
        shown(most)
    );
    let presets = [
        ("fast", LeaderSettings::fast()),
        ("default", LeaderSettings::default()),
        ("calm", LeaderSettings::calm()),
    ];
    let fits = presets.map(|(name, settings)| (name, settings.heartbeat_ttl / TRIES_PER_LEASE));
    match fits.iter().position(|(_, bound)| most <= *bound) {
        Some(0) => Finding::good("latency", found),
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
            Finding::note("latency", found, &advice)
        }
        None => {
            let advice = format!(
                "bring the store nearer, or take a lease of at least {}: members would lose \
                 shorter ones",
                shown(most * TRIES_PER_LEASE)
            );
            Finding::bad("latency", found, &advice)
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
            let finding = judged(vec![Duration::from_millis(ms); 100]);
            assert_eq!(finding.verdict, verdict, "{finding:?}");
            let told = format!("{} {}", finding.found, finding.advice.unwrap_or_default());
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn one_slow_answer_of_a_hundred_does_not_count() {
        let mut took = vec![Duration::from_millis(1); 100];
        took[3] = Duration::from_secs(9);
        assert_eq!(judged(took).verdict, Verdict::Good);
    }
}
