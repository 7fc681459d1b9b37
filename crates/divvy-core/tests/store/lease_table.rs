//! The reference of a lease store, under random schedules of time.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::store::{
    Acquired, Claim, LeaseKey, LeaseName, LeaseTable, Nonce, QuarantineId, QuarantineReport,
    SessionStart, StoreTime, Tenure, Token, WorkerId,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Something that a worker does, after some time has passed. The wall clock may
/// be stepped, back too.
#[derive(Debug, Clone)]
struct Step {
    passes: u64,
    unix_ms: u64,
    worker: usize,
    key: u32,
    ttl: u64,
    back: prop::sample::Index,
    what: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let time = (0_u64..60, 0_u64..2000);
    let who = (0_usize..3, 0_u32..3, 10_u64..120);
    (time, who, any::<prop::sample::Index>(), 0_u8..10).prop_map(
        |((passes, unix_ms), (worker, key, ttl), back, what)| Step {
            passes,
            unix_ms,
            worker,
            key,
            ttl,
            back,
            what,
        },
    )
}

fn workers() -> [WorkerId; 3] {
    [("c", "one"), ("c", "two"), ("d", "one")]
        .map(|(cluster, name)| WorkerId::new(cluster, name).unwrap())
}

fn time(ms: u64, unix_ms: u64) -> StoreTime {
    StoreTime {
        now: Moment::from_origin(Duration::from_millis(ms)),
        unix_ms,
    }
}

fn key(number: u32) -> LeaseKey {
    LeaseKey::new("g", number).unwrap()
}

/// A lease as a plain description: who has it, with which claim, until when.
type Lease = (WorkerId, Claim, u64);

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn leases_are_as_described_at_every_moment(steps in vec(step(), 1..80)) {
        let (mut table, workers) = (LeaseTable::default(), workers());
        let mut held: BTreeMap<LeaseKey, Lease> = BTreeMap::new();
        let mut tokens: BTreeMap<LeaseKey, Token> = BTreeMap::new();
        let mut claims: Vec<Claim> = Vec::new();
        let mut now = 0;
        for (number, step) in steps.into_iter().enumerate() {
            now += step.passes;
            let (at, worker) = (time(now, step.unix_ms), &workers[step.worker]);
            // Gone at exactly its moment.
            held.retain(|_, (_, _, until)| *until > now);
            let (ttl, until) = (Duration::from_millis(step.ttl), now + step.ttl);
            let wish = Claim { key: key(step.key), nonce: Nonce::new(number as u128) };
            let past = match claims.is_empty() {
                true => wish.clone(),
                false => claims[claims.len() - 1 - step.back.index(claims.len().min(4))].clone(),
            };
            let current = held.get(&past.key);
            let is_current = current.is_some_and(|(id, claim, _)| id == worker && *claim == past);
            match step.what {
                0..5 => {
                    let answer = table.acquire(at, worker, &wish, ttl);
                    prop_assert_eq!(answer == Acquired::Held, held.contains_key(&wish.key));
                    if let Acquired::Granted(token) = answer {
                        let last = tokens.insert(wish.key.clone(), token);
                        prop_assert!(last.is_none_or(|last| token > last));
                        prop_assert!(token.get() >= step.unix_ms as i64 * 1024);
                        held.insert(wish.key.clone(), (worker.clone(), wish.clone(), until));
                    }
                    claims.push(wish);
                }
                5..8 => {
                    let tenure = table.renew(at, worker, &past, ttl);
                    prop_assert_eq!(tenure == Tenure::Current, is_current);
                    if is_current {
                        held.insert(past.key.clone(), (worker.clone(), past, until));
                    }
                }
                8 => {
                    let tenure = table.release(at, worker, &past);
                    prop_assert_eq!(tenure == Tenure::Current, is_current);
                    if is_current {
                        held.remove(&past.key);
                    }
                }
                _ => table.sweep(at),
            }
            for number in 0..3 {
                let (found, right) = (table.holder(at, &key(number)), held.get(&key(number)));
                prop_assert_eq!(found.is_some(), right.is_some());
                if let (Some(found), Some((worker, claim, until))) = (found, right) {
                    prop_assert_eq!(found.worker, worker.to_string());
                    prop_assert_eq!(found.left, Duration::from_millis(until - now));
                    prop_assert_eq!(found.fence, Some((tokens[&claim.key], claim.nonce)));
                }
            }
        }
    }

    #[test]
    fn sweeping_changes_nothing_that_can_be_seen(steps in vec(step(), 1..60)) {
        let mut swept = LeaseTable::default();
        let mut plain = LeaseTable::default();
        let mut now = 0;
        for (number, step) in steps.iter().enumerate() {
            now += step.passes;
            let at = time(now, step.unix_ms);
            swept.sweep(at);
            let done = (act(&mut swept, at, step, number), act(&mut plain, at, step, number));
            prop_assert_eq!(&done.0, &done.1);
            prop_assert_eq!(seen(&swept, at), seen(&plain, at));
        }
    }
}

/// Does one step, of all that there are, and says what came of it.
fn act(table: &mut LeaseTable, at: StoreTime, step: &Step, number: usize) -> String {
    let (worker, ttl) = (&workers()[step.worker], Duration::from_millis(step.ttl));
    let nonce = Nonce::new(match step.what % 2 {
        0 => number as u128,
        _ => step.back.index(number + 1) as u128,
    });
    let claim = Claim {
        key: key(step.key),
        nonce,
    };
    match step.what {
        0..2 => format!("{:?}", table.acquire(at, worker, &claim, ttl)),
        2 => format!("{:?}", table.renew(at, worker, &claim, ttl)),
        3 => format!("{:?}", table.release(at, worker, &claim)),
        4..6 => format!("{:?}", table.open_session(at, worker, nonce, ttl)),
        6..8 => format!("{:?}", table.beat(at, worker, nonce, "{}", (ttl / 2, ttl))),
        8 => format!("{:?}", table.leave(at, worker, nonce)),
        _ => format!("{:?}", table.mark_moved(at, &claim.key, ttl)),
    }
}

/// Everything that can be read.
fn seen(table: &LeaseTable, at: StoreTime) -> String {
    let holders: Vec<_> = (0..3)
        .map(|number| table.holder(at, &key(number)))
        .collect();
    let cooling: Vec<_> = (0..3)
        .map(|number| table.is_cooling(at, &key(number)))
        .collect();
    let members = ["c", "d"].map(|name| table.members(at, &cluster(name)));
    format!("{holders:?} {cooling:?} {members:?} {:?}", table.groups())
}

fn cluster(name: &str) -> LeaseName {
    LeaseName::new("cluster", name).unwrap()
}

#[test]
fn what_expires_is_there_until_its_moment_and_not_at_it() {
    let (mut table, [one, two, _]) = (LeaseTable::default(), workers());
    let (first, second, ttl) = (Nonce::new(1), Nonce::new(2), Duration::from_millis(100));
    table.mark_moved(time(0, 0), &key(0), ttl);
    assert_eq!(
        table.open_session(time(0, 0), &one, first, ttl),
        SessionStart::Opened
    );
    let beaten = table.beat(time(0, 0), &one, first, "{}", (ttl, ttl));
    assert_eq!(beaten, Tenure::Current);

    let last = time(99, 0);
    assert!(table.is_cooling(last, &key(0)));
    assert_eq!(table.members(last, &one.cluster).len(), 1);
    let left = Duration::from_millis(1);
    let taken = table.open_session(last, &one, second, ttl);
    assert_eq!(taken, SessionStart::Taken(left));
    assert_eq!(
        table.open_session(last, &two, second, ttl),
        SessionStart::Opened
    );

    let moment = time(100, 0);
    assert!(!table.is_cooling(moment, &key(0)));
    assert!(table.members(moment, &one.cluster).is_empty());
    let beaten = table.beat(moment, &one, first, "{}", (ttl, ttl));
    assert_eq!(beaten, Tenure::Over);
    assert_eq!(table.leave(moment, &one, first), Tenure::Over);
    assert_eq!(
        table.open_session(moment, &one, second, ttl),
        SessionStart::Opened
    );
}

#[test]
fn a_token_is_above_the_last_and_above_the_clock_even_at_the_ends() {
    let token = |number| Token::new(number).unwrap();
    assert_eq!(Token::after(None, 0), token(1));
    assert_eq!(Token::after(None, 5), token(5 * 1024));
    assert_eq!(Token::after(Some(token(5 * 1024)), 5), token(5 * 1024 + 1));
    assert_eq!(Token::after(Some(token(9)), 0), token(10));
    assert_eq!(Token::after(None, u64::MAX).get(), i64::MAX);
}

#[test]
fn quarantine_ends_when_a_member_has_waited_in_it_for_the_longest_lease_reported() {
    let (mut table, [one, ..]) = (LeaseTable::default(), workers());
    let (short, long) = (Duration::from_millis(100), Duration::from_millis(1_000));
    let report = |longest_lease, waited| QuarantineReport {
        longest_lease,
        waited,
    };
    let claim = |nonce| Claim {
        key: key(0),
        nonce: Nonce::new(nonce),
    };
    table.begin_quarantine(QuarantineId::new("one"));
    let seen = table.report(&report(short, None));
    assert_eq!((seen.longest_lease, seen.is_over), (short, false));
    assert_eq!(
        table.acquire(time(0, 0), &one, &claim(1), short),
        Acquired::Quarantined
    );
    // Another has known of a longer one.
    assert!(!table.report(&report(long, None)).is_over);
    let almost = long - Duration::from_nanos(1);
    for (id, waited) in [("one", short), ("one", almost), ("another", long)] {
        let waited = Some((QuarantineId::new(id), waited));
        assert!(!table.report(&report(short, waited)).is_over);
    }
    let waited = Some((QuarantineId::new("one"), long));
    // Not by its own lease: by the longest that it reports with it.
    assert!(!table.report(&report(long * 2, waited)).is_over);
    let waited = Some((QuarantineId::new("one"), long * 2));
    assert!(table.report(&report(short, waited)).is_over);
    let granted = table.acquire(time(0, 0), &one, &claim(2), long * 3);
    assert!(matches!(granted, Acquired::Granted(_)));

    // What was granted counts for the next one, and renewals go on in it.
    table.begin_quarantine(QuarantineId::new("two"));
    let seen = table.report(&report(short, None));
    assert_eq!((seen.longest_lease, seen.is_over), (long * 3, false));
    assert_eq!(
        table.renew(time(1, 0), &one, &claim(2), long),
        Tenure::Current
    );
    assert_eq!(
        table.acquire(time(1, 0), &one, &claim(3), short),
        Acquired::Held
    );
    assert_eq!(table.release(time(1, 0), &one, &claim(2)), Tenure::Current);
    assert_eq!(
        table.acquire(time(1, 0), &one, &claim(3), short),
        Acquired::Quarantined
    );
}

#[cfg(feature = "simulation")]
#[test]
fn spoilt_keys_harm_what_they_belong_to_until_they_are_deleted() {
    let (mut table, [one, two, _]) = (LeaseTable::default(), workers());
    let ttl = Duration::from_millis(100);
    let claim = |number, nonce| Claim {
        key: key(number),
        nonce: Nonce::new(nonce),
    };
    for number in 0..4 {
        let granted = table.acquire(time(0, 0), &one, &claim(number, 1), ttl);
        assert!(matches!(granted, Acquired::Granted(_)));
    }
    table.spoil_lease(&key(0), "garbage");
    table.spoil_fence(&key(1));
    assert!(table.persist_lease(&key(2)));
    for (number, tenure) in [
        (0, Tenure::Over),
        (1, Tenure::Over),
        (2, Tenure::Current),
        (3, Tenure::Current),
    ] {
        let claim = claim(number, 1);
        assert_eq!(table.renew(time(1, 0), &one, &claim, ttl), tenure);
    }
    let holder = table.holder(time(1, 0), &key(0)).unwrap();
    assert!(holder.worker == "garbage" && holder.is_endless());
    assert_eq!(table.holder(time(1, 0), &key(1)).unwrap().fence, None);
    assert!(table.persist_lease(&key(2)));
    table.sweep(time(1_000, 0));
    // One never expires, of one nobody knows the last token, one never expires.
    for (number, is_free) in [(0, false), (1, false), (2, false), (3, true)] {
        let taken = table.acquire(time(1_000, 0), &two, &claim(number, 2), ttl);
        assert_eq!(matches!(taken, Acquired::Granted(_)), is_free, "{number}");
        table.delete_spoilt(&key(number));
        let taken = table.acquire(time(1_000, 0), &two, &claim(number, 3), ttl);
        assert_eq!(matches!(taken, Acquired::Granted(_)), !is_free, "{number}");
    }

    let (first, second) = (Nonce::new(1), Nonce::new(2));
    assert_eq!(
        table.open_session(time(0, 0), &one, first, ttl),
        SessionStart::Opened
    );
    table.spoil_session(&one);
    let beaten = table.beat(time(1, 0), &one, first, "{}", (ttl, ttl));
    assert_eq!(beaten, Tenure::Over);
    assert_eq!(
        table.open_session(time(1, 0), &one, second, ttl),
        SessionStart::Opened
    );
    table.spoil_moved(&key(0));
    assert!(table.is_cooling(time(u64::from(u32::MAX), 0), &key(0)));
    table.delete_spoilt(&key(0));
    assert!(!table.is_cooling(time(0, 0), &key(0)));
}
