//! A store that goes back and does not say so.

use std::time::Duration;

use divvy_sim::{Fault, FaultKind, Preset, Profile, TrueTime, World};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A worker stands still, its partitions run elsewhere, the store goes back to
/// before that, and stands still itself until after the worker is awake.
fn world(place: usize, stalls_after: Duration, awake_after: Duration) -> World {
    let mut profile = Profile::sound(9, Preset::Fast, 4, 24);
    let sleeps = TrueTime::ZERO + ms(8000);
    let forgets = sleeps + ms(1200);
    profile.faults = vec![
        Fault {
            at: sleeps,
            lasts: ms(1200) + awake_after,
            kind: FaultKind::Pause(place),
        },
        Fault {
            at: forgets,
            lasts: Duration::ZERO,
            kind: FaultKind::Amnesia {
                back: Some(ms(900)),
                announced: false,
            },
        },
        Fault {
            at: forgets + stalls_after,
            lasts: ms(1500),
            kind: FaultKind::Stall,
        },
    ];
    profile.faults_until = forgets + ms(4000);
    World::new(profile, false)
}

#[test]
fn who_slept_while_the_store_went_back_learns_it_from_the_others() {
    for place in 0..4 {
        for stalls_after in [ms(200), ms(350)] {
            for awake_after in [ms(0), ms(150), ms(300)] {
                let ended = world(place, stalls_after, awake_after).run();
                assert!(
                    ended.is_ok(),
                    "m{place} sleeps {awake_after:?} longer, the store stalls after \
                     {stalls_after:?}: {}",
                    ended.unwrap_err()
                );
            }
        }
    }
}
