//! Key spaces: what is warned of, what is refused, how keys spread.

mod logs;

use divvy_core::{KeyScheme, KeySpace};
use logs::warnings_of;

#[test]
fn a_count_outside_of_the_bounds_of_djb2_js_is_clamped_with_one_warning() {
    for (given, used) in [(5, 10), (-5, 10), (0, 10), (1001, 1000), (i64::MAX, 1000)] {
        let mut space = None;
        let warnings = warnings_of(|| space = KeySpace::new(KeyScheme::Djb2Js, given).ok());
        assert_eq!(space.map(|space| space.partitions()), Some(used));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&format!("{given} is outside of 10..=1000")));
    }
}

#[test]
fn a_good_count_is_not_warned_of() {
    for scheme in KeyScheme::ALL {
        for count in [10, 100, 128, 1000] {
            let warnings = warnings_of(|| _ = KeySpace::new(scheme, count));
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }
}

#[test]
fn multiples_of_33_are_warned_of_under_djb2_only() {
    for scheme in KeyScheme::ALL {
        for count in [33, 99, 330, 660, 990] {
            let warnings = warnings_of(|| _ = KeySpace::new(scheme, count));
            let expected = usize::from(scheme != KeyScheme::Xxh3);
            assert_eq!(warnings.len(), expected, "{scheme} {count}: {warnings:?}");
        }
    }
}

#[test]
fn djb2_leaves_many_partitions_empty_at_multiples_of_33_and_xxh3_does_not() {
    let filled = |scheme, count| {
        let space = KeySpace::new(scheme, count).unwrap();
        let mut seen = vec![false; count as usize];
        for number in 0..20_000 {
            seen[space.locate(&format!("user_{number:05}")).partition as usize] = true;
        }
        seen.iter().filter(|&&seen| seen).count() as f64 / count as f64
    };
    for scheme in KeyScheme::ALL {
        for count in [99, 330, 660, 990] {
            let filled = filled(scheme, count);
            match scheme {
                KeyScheme::Xxh3 => assert_eq!(filled, 1.0, "{count}"),
                _ => assert!(filled < 0.75, "{scheme}, {count}: {filled}"),
            }
        }
        assert_eq!(filled(scheme, 100), 1.0);
    }
}

#[test]
fn a_count_that_other_schemes_cannot_have_is_an_error_with_the_bound() {
    for count in [0, -1, 1 << 25, i64::MAX] {
        let error = KeySpace::new(KeyScheme::Xxh3, count)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            format!("partition count '{count}': must be in 1..=16777216")
        );
    }
}

#[test]
fn xxh3_spreads_keys_of_any_look_within_4_sigma() {
    let shapes: [fn(u32) -> String; 4] = [
        |n| format!("user_{n:06}"),
        |n| n.to_string(),
        |n| format!("{:x}-{:x}", n.wrapping_mul(0x9E37_79B9), n),
        |n| "k".repeat(1 + n as usize % 40) + &n.to_string(),
    ];
    let space = KeySpace::default();
    for shape in shapes {
        let mut counts = [0f64; 100];
        for number in 0..100_000 {
            counts[space.locate(&shape(number)).partition as usize] += 1.0;
        }
        let chi: f64 = counts
            .iter()
            .map(|count| (count - 1000.0).powi(2) / 1000.0)
            .sum();
        // 99 degrees of freedom: mean 99, standard deviation sqrt(198).
        assert!(
            (chi - 99.0).abs() < 4.0 * 198f64.sqrt(),
            "{}: {chi}",
            shape(1)
        );
    }
}
