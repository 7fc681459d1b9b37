//! What every key-value store must do, each a function of its own.

pub mod cancellations;
pub mod clusters;
pub mod interruptions;
pub mod listings;
pub mod names;
pub mod races;
pub mod random;
pub mod spoilt;
pub mod values;
pub mod watches;
pub mod writes;

use super::options::Options;
use super::report::{CaseRun, Failure, Report};
use super::run::Run;
use super::subject::KeyValueSubject;

/// Runs the named cases in order, tells each that was passed, and reports them.
macro_rules! cases {
    ($report:ident, $subject:ident, $options:ident: $($module:ident::{$($case:ident),+ $(,)?})+) => {
        $($({
            let started = tokio::time::Instant::now();
            $module::$case($subject, $options).await?;
            let passed = CaseRun {
                name: stringify!($case),
                took: started.elapsed(),
            };
            $subject.passed(&passed);
            $report.cases.push(passed);
        })+)+
    };
}
pub(super) use cases;

/// Judges a key-value store by every case. The first that it does not pass is
/// the failure.
pub async fn key_value(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<Report, Failure> {
    let run = Run::new("key_value", options);
    let opening = subject.open("conformance");
    let store = run.done("first", "open".to_owned(), opening).await?;
    let mut report = Report::new(store.describe(), options.seed);
    drop(store);
    cases!(report, subject, options:
        writes::{
            a_creation_needs_absence,
            an_update_needs_the_revision,
            a_deletion_needs_the_revision,
            revisions_of_a_key_increase,
            a_repeated_write_is_a_conflict,
            impossible_revisions_are_conflicts,
        }
        clusters::{clusters_never_see_each_other, a_store_describes_itself}
        values::{
            values_come_back_byte_for_byte,
            the_largest_value_fits_and_one_byte_more_is_refused,
            a_large_value_travels_in_chunks,
        }
        names::{distinct_names_never_meet, the_longest_keys_fit}
        listings::{
            a_listing_holds_exactly_its_prefix,
            a_listing_of_many_is_complete,
            a_listing_holds_what_stays_while_others_change,
        }
        random::{
            random_writes_are_as_in_the_model,
            concurrent_writes_form_one_chain,
        }
        races::{
            one_of_many_updates_wins,
            one_of_many_creations_wins,
            a_deletion_and_an_update_have_one_winner,
            concurrent_increments_are_all_counted,
        }
        cancellations::{a_cancelled_write_happens_once_or_never}
        watches::{
            a_watch_begins_with_what_is_there,
            a_watch_sees_changes_of_others,
            a_watch_keeps_to_its_prefix_and_cluster,
            watches_converge_under_a_burst,
            dropped_watches_end,
        }
    );
    if subject.vandal().is_none() {
        report.not_offered.extend(spoilt::NAMES);
    } else {
        cases!(report, subject, options:
            spoilt::{
                a_spoilt_value_harms_no_other_key,
                a_spoilt_value_can_be_replaced_and_deleted,
            }
        );
    }
    if subject.interruption().is_none() {
        report.not_offered.extend(interruptions::NAMES);
        return Ok(report);
    }
    cases!(report, subject, options:
        interruptions::{
            operations_fail_in_time_and_work_again,
            a_watch_catches_up_after_an_interruption,
            acknowledged_writes_survive_an_interruption,
        }
    );
    Ok(report)
}
