//! Tests the suite: stores that are broken on purpose, each of which it must
//! catch. Time is stepped, so that even a store that hangs costs nothing.

mod careless_key_value;
mod careless_leases;
mod careless_tenures;
mod forgetting;
mod interruption;
mod key_value_defects;
mod lease_defects;

use std::time::Duration;

use careless_key_value::CarelessKeyValues;
use careless_leases::CarelessLeases;
use divvy::store::conformance::{Failure, Options, Report, key_value, leases};
use key_value_defects::KeyValueDefect;
use lease_defects::LeaseDefect;

fn options() -> Options {
    Options {
        wait: Duration::from_secs(2),
        ..Options::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_sound_key_value_store_passes_every_case() {
    let subject = CarelessKeyValues::new(KeyValueDefect::None);
    let report = key_value(&subject, &options()).await.unwrap();
    assert_eq!((report.cases.len(), report.not_offered.len()), (33, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sound_lease_store_passes_every_case() {
    let subject = CarelessLeases::new(LeaseDefect::None);
    let report = leases(&subject, &options()).await.unwrap();
    assert_eq!((report.cases.len(), report.not_offered.len()), (47, 0));
}

#[tokio::test(start_paused = true)]
async fn every_defect_of_a_key_value_store_is_caught() {
    let mut missed = Vec::new();
    for &(defect, case) in key_value_defects::DEFECTS {
        let subject = CarelessKeyValues::new(defect);
        let result = key_value(&subject, &options()).await;
        missed.extend(unless_caught(defect, case, result.err()));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test(start_paused = true)]
async fn every_defect_of_a_lease_store_is_caught() {
    let mut missed = Vec::new();
    for &(defect, case) in lease_defects::DEFECTS {
        let subject = CarelessLeases::new(defect);
        let result = leases(&subject, &options()).await;
        missed.extend(unless_caught(defect, case, result.err()));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Cases that are behind others in the suite, each with a defect that it
/// catches when it runs alone.
macro_rules! alone {
    ($subject:ident: $($module:ident::$case:ident, $defect:expr;)+) => {
        [$({
            let subject = $subject::new($defect);
            let failure = $module::$case(&subject, &options()).await.err();
            let missed = unless_caught($defect, stringify!($case), failure);
            assert!(missed.is_none(), "{missed:?}");
            stringify!($case)
        }),+]
    };
}

async fn key_value_cases_alone() -> [&'static str; 8] {
    use KeyValueDefect as Defect;
    use divvy::store::conformance::key_value_cases::{listings, races, random, values, writes};
    alone!(CarelessKeyValues:
        writes::revisions_of_a_key_increase, Defect::RevisionsBeginAnewAfterDeletion;
        writes::a_repeated_write_is_a_conflict, Defect::TheSameValueIsNoConflict;
        values::a_large_value_travels_in_chunks, Defect::ValueIsCutAtTheLimit;
        listings::a_listing_holds_exactly_its_prefix, Defect::ListsByRawPrefix;
        random::random_writes_are_as_in_the_model, Defect::DeletionIgnoresRevision;
        races::one_of_many_updates_wins, Defect::TwoWinners;
        races::one_of_many_creations_wins, Defect::TwoWinners;
        races::a_deletion_and_an_update_have_one_winner, Defect::DeletionIsNotAtomic;
    )
}

async fn lease_cases_alone() -> [&'static str; 4] {
    use LeaseDefect as Defect;
    use divvy::store::conformance::lease_cases::{expiry, races, random};
    alone!(CarelessLeases:
        expiry::a_renewed_lease_lives_on, Defect::RenewalDoesNothing;
        expiry::an_expired_tenure_is_over, Defect::RenewalRevives;
        random::random_operations_are_as_in_the_model, Defect::RenewalIgnoresTheNonce;
        races::contended_leases_have_one_holder_at_a_time, Defect::TwoHolders;
    )
}

#[tokio::test(start_paused = true)]
async fn every_case_catches_a_defect() {
    let subject = CarelessKeyValues::new(KeyValueDefect::None);
    let key_values = key_value(&subject, &options()).await.unwrap();
    let caught = key_value_defects::DEFECTS.iter().map(|(_, case)| *case);
    check_none_is_idle(&key_values, caught.chain(key_value_cases_alone().await));

    let subject = CarelessLeases::new(LeaseDefect::None);
    let leases = leases(&subject, &options()).await.unwrap();
    let caught = lease_defects::DEFECTS.iter().map(|(_, case)| *case);
    check_none_is_idle(&leases, caught.chain(lease_cases_alone().await));
}

/// Every case of a report is among those that have caught something.
#[track_caller]
fn check_none_is_idle(report: &Report, caught: impl Iterator<Item = &'static str>) {
    let caught: Vec<&str> = caught.collect();
    let mut cases = report.cases.iter();
    let idle = cases.find(|case| !caught.contains(&case.name));
    assert!(
        idle.is_none(),
        "nothing shows that {idle:?} catches anything"
    );
}

/// A failure names its case, its seed and what was done before.
#[tokio::test(start_paused = true)]
async fn a_failure_can_be_understood() {
    let subject = CarelessKeyValues::new(KeyValueDefect::CreationOverwrites);
    let failure = key_value(&subject, &Options::seeded(77)).await.unwrap_err();
    let shown = format!("{failure:?}");
    assert_eq!(failure.seed(), 77);
    assert!(
        shown.starts_with("a_creation_needs_absence (seed 77): "),
        "{shown}"
    );
    assert!(shown.contains("two set leader Absent"), "{shown}");
    assert!(failure.history().len() > 3 && shown.contains("-> Done(Revision("));
}

/// What is to be said of a defect that the right case did not catch.
fn unless_caught<D: std::fmt::Debug>(
    defect: D,
    case: &str,
    failure: Option<Failure>,
) -> Option<String> {
    match failure {
        None => Some(format!("{defect:?} was not caught, {case} should have")),
        Some(failure) if failure.case() == case => None,
        Some(failure) => Some(format!(
            "{defect:?} was caught by {}, not {case}: {}",
            failure.case(),
            failure.reason()
        )),
    }
}
